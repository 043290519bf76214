import { X509Certificate } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { openAuthority } from '../../../certs/authority.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { keptServerCertificate } from './server-identity.ts'

const nowMs = Date.now()
const names = ['broker.lan', '10.0.0.1']

test('the certificate is kept while it has the names and lasts, and is issued again otherwise', async (t) => {
  const folder = testFolder(t, { authority: {}, other: {} })
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const first = await keptServerCertificate(folder, authority, names, nowMs)
  t.equal(new X509Certificate(first.certificate).checkHost('broker.lan'), 'broker.lan')
  const save = async ({ certificate, key }: typeof first) => {
    await writeFile(join(folder, 'server.crt'), certificate)
    await writeFile(join(folder, 'server.key'), key)
  }
  await save(first)
  t.same(await keptServerCertificate(folder, authority, names, nowMs), first)
  const isOther = async (what: string, ...args: Parameters<typeof keptServerCertificate>) =>
    t.not((await keptServerCertificate(...args)).certificate, first.certificate, what)
  await isOther('another name', folder, authority, [...names, 'new.lan'], nowMs)
  await isOther('near its end', folder, authority, names, nowMs + 4.8 * 365 * 24 * 3600_000)
  await isOther('another authority', folder, await openAuthority(join(folder, 'other'), nowMs), names, nowMs)
  await writeFile(join(folder, 'server.key'), 'half')
  await isOther('a key that was cut', folder, authority, names, nowMs)
})

test('while the clock is wrong the certificate is kept, whatever its names', async (t) => {
  const folder = testFolder(t, { authority: {} })
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  await t.rejects(keptServerCertificate(folder, authority, names, 0), /clock shows 1970/)
  const { certificate, key } = await keptServerCertificate(folder, authority, names, nowMs)
  await writeFile(join(folder, 'server.crt'), certificate)
  await writeFile(join(folder, 'server.key'), key)
  t.equal((await keptServerCertificate(folder, authority, ['other'], 0)).certificate, certificate)
})
