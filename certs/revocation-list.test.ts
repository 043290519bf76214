import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { openAuthority } from './authority.ts'
import { issueNode } from './issue.ts'
import { revocationList } from './revocation-list.ts'

const run = promisify(execFile)
const nowMs = Date.now()

/** What `openssl verify` with the list finds of this certificate. */
async function verified(folder: string, list: string, certificate: string): Promise<string> {
  const path = (name: string) => join(folder, name)
  await Promise.all([writeFile(path('list.crl'), list), writeFile(path('one.crt'), certificate)])
  const args = ['-crl_check', '-CAfile', path('authority/ca.crt'), '-CRLfile', path('list.crl'), path('one.crt')]
  return run('openssl', ['verify', ...args]).then(
    ({ stdout }) => stdout,
    (error: { readonly stderr: string }) => error.stderr,
  )
}

test('openssl rejects the certificates of the list, and accepts others of the same authority', async (t) => {
  const folder = testFolder(t, { authority: {} })
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const [first, second] = ['pi-1', 'pi-2'].map((nodeName) => issueNode(authority, { nodeName, nowMs }))
  if (first === undefined || second === undefined) throw new Error('Two certificates were issued')
  const serial = new X509Certificate(first.certificate).serialNumber
  const list = revocationList(authority, { revoked: [{ serial, revokedMs: nowMs }], nowMs })
  t.match(await verified(folder, list, first.certificate), /certificate revoked/)
  t.match(await verified(folder, list, second.certificate), /one\.crt: OK/)
  const { stdout } = await run('openssl', ['crl', '-in', join(folder, 'list.crl'), '-noout', '-text'])
  t.match(stdout, /Version 2 \(0x1\)/)
  t.match(stdout, new RegExp(`Serial Number: ${serial}`))
  t.match(stdout, /X509v3 CRL Number/)
  const [, until = ''] = /Next Update: (.*)/.exec(stdout) ?? []
  t.equal(Date.parse(until), authority.notAfterMs, 'it ends with the authority')
})

test('an empty list revokes nothing, and is required: without one openssl accepts no certificate', async (t) => {
  const folder = testFolder(t, { authority: {}, other: {} })
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const other = await openAuthority(join(folder, 'other'), nowMs)
  const { certificate } = issueNode(authority, { nodeName: 'pi-1', nowMs })
  t.match(await verified(folder, revocationList(authority, { revoked: [], nowMs }), certificate), /one\.crt: OK/)
  const foreign = revocationList(other, { revoked: [], nowMs })
  t.match(await verified(folder, foreign, certificate), /unable to get certificate CRL|CRL signature failure/)
})
