import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { openTokenKeys, readTokenKeys, removePreviousTokenKey, rotateTokenKey } from './service-account-keys.ts'

test('a key is made once, for its owner only, and rotated in two steps', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-keys-'))
  t.teardown(() => rm(folder, { recursive: true }))
  t.equal(await readTokenKeys(folder), undefined)
  await t.rejects(rotateTokenKey(folder), /start the controller first/)
  const first = await openTokenKeys(folder)
  const path = join(folder, 'service-account.key')
  t.equal((await stat(path)).mode & 0o777, 0o600)
  await chmod(path, 0o644)
  t.equal((await openTokenKeys(folder)).signing.id, first.signing.id)
  t.equal((await stat(path)).mode & 0o777, 0o600, 'a key that others could read is made private')

  const second = await rotateTokenKey(folder)
  t.not(second.signing.id, first.signing.id)
  t.same(
    second.others.map(({ id }) => id),
    [first.signing.id],
  )
  await t.rejects(rotateTokenKey(folder), /the previous key is still trusted/)
  t.equal(await removePreviousTokenKey(folder), true)
  t.equal(await removePreviousTokenKey(folder), false)
  t.match(await openTokenKeys(folder), { signing: { id: second.signing.id }, others: [] })
  t.same(await readdir(folder), ['service-account.key'])
  await writeFile(path, 'no key')
  await t.rejects(openTokenKeys(folder), /There is no private key of the curve P-256 in .*service-account.key/)
})
