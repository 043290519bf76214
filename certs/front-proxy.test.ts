import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { dayMs, newKey, openAuthority, privateKeyPem } from './authority.ts'
import { openFrontProxyAuthority } from './front-proxy.ts'
import { issueFrontProxyClient } from './issue.ts'

const nowMs = Date.UTC(2026, 5, 1)

test('the authority of the front proxy is made once, for its owner alone, and is not that of the fleet', async (t) => {
  const folder = testFolder(t)
  const fleet = await openAuthority(folder, nowMs)
  const made = await openFrontProxyAuthority(folder, nowMs)
  t.not(made.hash, fleet.hash)
  t.notOk(new X509Certificate(made.certificate).verify(new X509Certificate(fleet.certificate).publicKey))
  t.equal(statSync(join(folder, 'front-proxy-ca.key')).mode & 0o777, 0o600)
  t.equal((await openFrontProxyAuthority(folder, nowMs + dayMs)).certificate, made.certificate)
})

test('its client has the name that extension servers accept, and is valid for clients only', async (t) => {
  const authority = await openFrontProxyAuthority(testFolder(t), nowMs)
  const client = new X509Certificate(issueFrontProxyClient(authority, { nowMs }).certificate)
  t.match(client.subject, /CN=front-proxy-client$/)
  t.ok(client.verify(new X509Certificate(authority.certificate).publicKey))
  t.same(client.keyUsage, ['1.3.6.1.5.5.7.3.2'])
})

test('its certificate is renewed with the same key, so that what it has signed stays valid', async (t) => {
  const folder = testFolder(t)
  const made = await openFrontProxyAuthority(folder, nowMs)
  const client = new X509Certificate(issueFrontProxyClient(made, { nowMs }).certificate)
  const later = nowMs + 9 * 365 * dayMs
  const renewed = await openFrontProxyAuthority(folder, later)
  t.not(renewed.certificate, made.certificate)
  t.ok(renewed.notAfterMs > later + 9 * 365 * dayMs)
  t.ok(client.verify(new X509Certificate(renewed.certificate).publicKey))
})

test('none is made while the clock is wrong, and one that is there is used', async (t) => {
  const folder = testFolder(t)
  await t.rejects(openFrontProxyAuthority(folder, 0), /No certificate is made while this machine's clock shows 1970/)
  const made = await openFrontProxyAuthority(folder, nowMs)
  t.equal((await openFrontProxyAuthority(folder, 0)).certificate, made.certificate)
})

test('a certificate of another key is replaced, and a file that is not a key is named', async (t) => {
  const folder = testFolder(t)
  const path = join(folder, 'front-proxy-ca.key')
  const made = await openFrontProxyAuthority(folder, nowMs)
  writeFileSync(path, privateKeyPem(newKey()))
  const replaced = await openFrontProxyAuthority(folder, nowMs)
  t.not(replaced.hash, made.hash)
  t.equal(statSync(path).mode & 0o777, 0o600)
  unlinkSync(join(folder, 'front-proxy-ca.crt'))
  await openFrontProxyAuthority(folder, nowMs)
  t.match(readFileSync(join(folder, 'front-proxy-ca.crt'), 'utf8'), /BEGIN CERTIFICATE/)
  writeFileSync(path, 'x')
  await t.rejects(openFrontProxyAuthority(folder, nowMs), /front-proxy-ca\.key: restore it from a backup/)
})
