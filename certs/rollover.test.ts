import { X509Certificate } from 'node:crypto'
import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { openAuthority, wrongDate } from './authority.ts'
import { issuerOf, signerOf } from './client-certificate.ts'
import { issueNode } from './issue.ts'
import { beginRollover, changeOver, finishRollover, NextKeyError, rolloverIn } from './rollover.ts'

const nowMs = Date.UTC(2026, 5, 1)

test('both authorities are trusted from the first step to the last, and one of them signs', async (t) => {
  const folder = await aFolder(t)
  const first = await openAuthority(folder, nowMs)
  t.match(await rolloverIn(folder), { stage: 'none', hash: first.hash })

  const begun = await beginRollover(folder, nowMs)
  t.match(begun, { stage: 'begun', hash: first.hash })
  t.same(await beginRollover(folder, nowMs), begun, 'running it again changes nothing')
  const both = await openAuthority(folder, nowMs)
  t.equal(both.hash, first.hash)
  t.equal(both.trusted.match(/BEGIN/g)?.length, 2)
  const old = derOf(issueNode(both, { nodeName: 'pi-1', nowMs }).certificate)

  t.match(await changeOver(folder), { stage: 'changed-over', hash: begun.next, previous: first.hash })
  const second = await openAuthority(folder, nowMs)
  t.equal(second.hash, begun.next)
  t.equal(second.trusted.match(/BEGIN/g)?.length, 2)
  const fresh = derOf(issueNode(second, { nodeName: 'pi-1', nowMs }).certificate)
  t.same([signerOf(old, second.trusted), signerOf(fresh, second.trusted)], [first.hash, second.hash])
  await t.rejects(beginRollover(folder, nowMs), { message: /finish it first/ })

  t.match(await finishRollover(folder), { stage: 'none', hash: second.hash })
  const last = await openAuthority(folder, nowMs)
  t.equal(signerOf(old, last.trusted), undefined)
  const issuer = (der: Uint8Array, trusted: string) => issuerOf(new X509Certificate(der), trusted)
  t.same([issuer(old, second.trusted), issuer(fresh, second.trusted)], [first.hash, second.hash])
  t.equal(issuer(old, last.trusted), undefined)
  t.same((await readdir(folder)).sort(), ['ca.crt', 'ca.key'])
})

test('steps out of order are refused with the one before', async (t) => {
  const folder = await aFolder(t)
  await t.rejects(rolloverIn(folder), { message: /There is no authority/ })
  await openAuthority(folder, nowMs)
  await t.rejects(changeOver(folder), { message: /begin first/ })
  await t.rejects(finishRollover(folder), { message: /no previous authority/ })
})

test('a change that was broken off between its two files is finished by the next who opens them', async (t) => {
  const folder = await aFolder(t)
  await openAuthority(folder, nowMs)
  const { next } = await beginRollover(folder, nowMs)
  await writeFile(join(folder, 'previous.crt'), await readFile(join(folder, 'ca.crt')))
  await rename(join(folder, 'next.key'), join(folder, 'ca.key'))
  t.equal((await openAuthority(folder, nowMs)).hash, next)
  t.match(await rolloverIn(folder), { stage: 'changed-over', hash: next })
})

test('a change that was broken off is finished by the command, too', async (t) => {
  const folder = await aFolder(t)
  const first = await openAuthority(folder, nowMs)
  const { next } = await beginRollover(folder, nowMs)
  await writeFile(join(folder, 'previous.crt'), await readFile(join(folder, 'ca.crt')))
  await rename(join(folder, 'next.key'), join(folder, 'ca.key'))
  t.match(await rolloverIn(folder), { stage: 'begun', hash: first.hash, next })
  t.match(await changeOver(folder), { stage: 'changed-over', hash: next, previous: first.hash })
  t.equal((await openAuthority(folder, nowMs)).hash, next)
})

test('without the key of the next authority nothing is changed', async (t) => {
  const folder = await aFolder(t)
  await openAuthority(folder, nowMs)
  const begun = await beginRollover(folder, nowMs)
  await rename(join(folder, 'next.key'), join(folder, 'elsewhere'))
  await t.rejects(changeOver(folder), /next\.key is not there, or is not the key of .*next\.crt/)
  await writeFile(join(folder, 'next.key'), await readFile(join(folder, 'ca.key')))
  await t.rejects(changeOver(folder), NextKeyError)
  t.same(await rolloverIn(folder), begun)
  t.same((await readdir(folder)).sort(), ['ca.crt', 'ca.key', 'elsewhere', 'next.crt', 'next.key'])
})

test('the folder of a controller that has changed over may be copied over one of before', async (t) => {
  const [one, other] = [await aFolder(t), await aFolder(t)]
  await openAuthority(one, nowMs)
  await beginRollover(one, nowMs)
  await cp(one, other, { recursive: true })
  const changed = await changeOver(one)
  await cp(one, other, { recursive: true })
  t.same(await rolloverIn(other), changed, 'the earlier next authority is no longer the next one')
  await t.rejects(changeOver(other), /begin first/)
  await finishRollover(other)
  const { hash, next } = await beginRollover(other, nowMs)
  t.equal(hash, changed.hash)
  t.not(next, changed.hash)
  t.match(await changeOver(other), { hash: next })
})

test('no certificate is made by a clock that cannot be right', async (t) => {
  const folder = await aFolder(t)
  const authority = await openAuthority(folder, nowMs)
  await t.rejects(beginRollover(folder, 0), { message: /clock shows 1970/ })
  t.throws(() => issueNode(authority, { nodeName: 'pi-1', nowMs: 0 }), { message: /clock shows 1970/ })
  t.match(
    wrongDate(nowMs - 365 * 24 * 3600_000, authority),
    /clock shows 2025-06-01/,
    'nor by one older than the authority',
  )
  t.equal(wrongDate(nowMs, authority), undefined)
})

test('a certificate that only has the name of the authority is not accepted', async (t) => {
  const ours = await openAuthority(await aFolder(t), nowMs)
  const other = await openAuthority(await aFolder(t), nowMs)
  const foreign = issueNode(other, { nodeName: 'pi-1', nowMs, lifeMs: 1000 })
  t.equal(signerOf(derOf(foreign.certificate), ours.trusted), undefined)
  t.equal(signerOf(derOf(ours.certificate), ours.trusted), undefined, 'nor is an authority a client')
  t.equal(signerOf(Buffer.from('nonsense'), ours.trusted), undefined)
})

function derOf(pem: string): Uint8Array {
  return new X509Certificate(pem).raw
}

async function aFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rollover-'))
  t.teardown(() => rm(folder, { recursive: true }))
  return folder
}
