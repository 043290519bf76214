import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { readSecretFile, readSecretLine } from './secret-file.ts'

test('a secret is the first line of a file that only its owner can read', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-secret-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const path = join(folder, 'secret')
  await writeFile(path, ' s3cret \nmore\n', { mode: 0o600 })
  t.equal(await readSecretLine(path), 's3cret')
  t.equal(await readSecretFile(path), ' s3cret \nmore\n')
  for (const mode of [0o640, 0o604]) {
    await chmod(path, mode)
    await t.rejects(readSecretLine(path), { message: `Other users can read ${path}: chmod 600 ${path}`, isFinal: true })
  }
  await chmod(path, 0o600)
  await writeFile(path, '\nmore')
  await t.rejects(readSecretLine(path), { message: `${path} is empty`, isFinal: true })
  await writeFile(path, 'x'.repeat(65_537))
  await t.rejects(readSecretLine(path), { message: `${path} is longer than 65536 bytes` })
  const missing = join(folder, 'missing')
  await t.rejects(readSecretLine(missing), { message: `Cannot read ${missing}: ENOENT`, isFinal: false })
})
