import { execFileSync } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { openAuthority } from '../../../certs/authority.ts'
import { beginRollover, changeOver, finishRollover } from '../../../certs/rollover.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { authorityLists, listedByOthers } from './authority-lists.ts'

const nowMs = Date.now()
const text = (crl: string) => execFileSync('openssl', ['crl', '-noout', '-text'], { input: crl }).toString()
const lists = (pem: string) => pem.match(/-----BEGIN X509 CRL-----[^-]+-----END X509 CRL-----/g) ?? []
const updateOf = (crl: string) => Date.parse(/Last Update: (.*)/.exec(text(crl))?.[1] ?? '')

test('a list is written when other certificates are revoked, each later than the one before', async (t) => {
  const folder = testFolder(t, { authority: {}, files: {} })
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const files = join(folder, 'files')
  const revoked = (serial: string) => ({ serial, revokedMs: nowMs, authority: authority.hash })
  const first = await authorityLists(files, authority, [], nowMs)
  t.equal(await authorityLists(files, authority, [], nowMs + 60_000), first)
  const second = await authorityLists(
    files,
    authority,
    [revoked('0a'), { ...revoked('0b'), authority: 'other' }],
    nowMs,
  )
  t.match(text(second), /Serial Number: 0A/)
  t.notMatch(text(second), /Serial Number: 0B/)
  t.ok(updateOf(second) > updateOf(first), 'in the same second')
  t.ok(updateOf(second) < nowMs - 3000_000, 'a server whose clock is behind accepts it')
})

test('of the previous authority the last list stays, until it is not trusted any more', async (t) => {
  const folder = testFolder(t, { authority: {}, files: {} })
  const [path, files] = [join(folder, 'authority'), join(folder, 'files')]
  const first = await openAuthority(path, nowMs)
  const revoked = [{ serial: '0a', revokedMs: nowMs, authority: first.hash }]
  await authorityLists(files, first, revoked, nowMs)
  await beginRollover(path, nowMs)
  t.equal(lists(await authorityLists(files, await openAuthority(path, nowMs), revoked, nowMs)).length, 1)
  await changeOver(path)
  const both = lists(await authorityLists(files, await openAuthority(path, nowMs), revoked, nowMs))
  t.same(
    both.map((one) => /Serial Number: 0A/.test(text(one))),
    [false, true],
  )
  t.same([...(await listedByOthers(files, await openAuthority(path, nowMs)))], ['0a'])
  await finishRollover(path)
  t.same([...(await listedByOthers(files, await openAuthority(path, nowMs)))], [])
  t.equal(lists(await authorityLists(files, await openAuthority(path, nowMs), revoked, nowMs)).length, 1)
  t.equal((await readdir(files)).length, 1)
})
