import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { openAuthority } from '../../../certs/authority.ts'
import { issueNode } from '../../../certs/issue.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { memoryStore } from '../memory-store.ts'
import { revoke } from '../revocations.ts'
import type { Store } from '../store.ts'
import {
  beginIssuedCertificates,
  isIssuedCertificates,
  issuedCertificatesIn,
  recordIssuedCertificate,
} from './issued-certificates.ts'

async function all(store: Store) {
  const { items } = await store.list('configmaps', 'kube-system')
  return items.filter(isIssuedCertificates).flatMap(issuedCertificatesIn)
}

test('nothing is recorded before it has begun', async (t) => {
  const store = memoryStore({ clock })
  const authority = await openAuthority(join(testFolder(t), 'authority'), Date.now())
  const { certificate } = issueNode(authority, { nodeName: 'pi-1', nowMs: Date.now() })
  await recordIssuedCertificate({ store, clock }, 'system:node:pi-1', certificate, authority.hash)
  t.same(await all(store), [])
})

test('nodes from before have certificates that are not known; later ones are recorded by number', async (t) => {
  const store = memoryStore({ clock })
  const { resourceVersion: _, ...metadata } = aNode({ name: 'pi-1' }).metadata
  await store.create('nodes', { ...aNode({ name: 'pi-1' }), metadata })
  await revoke({ store, clock }, 'system:node:gone', 'NodeDeleted')
  await beginIssuedCertificates({ store, clock }, 'sha256:first')
  const users = (await all(store)).map(({ user, serial }) => `${user} ${serial}`)
  t.same(users.sort(), ['system:node:gone undefined', 'system:node:pi-1 undefined'])

  const nowMs = Date.now()
  const authority = await openAuthority(join(testFolder(t), 'authority'), nowMs)
  const { certificate } = issueNode(authority, { nodeName: 'pi-2', nowMs })
  const short = issueNode(authority, { nodeName: 'pi-2', nowMs, lifeMs: -1_000 })
  for (const pem of [short.certificate, certificate]) {
    await recordIssuedCertificate({ store, clock }, 'system:node:pi-2', pem, authority.hash)
  }
  await beginIssuedCertificates({ store, clock }, 'sha256:second')
  const known = (await all(store)).filter(({ serial }) => serial !== undefined)
  const { serialNumber, validTo } = new X509Certificate(certificate)
  t.match(known, [
    {
      user: 'system:node:pi-2',
      serial: serialNumber.toLowerCase(),
      authority: authority.hash,
      notAfterMs: Date.parse(validTo),
    },
  ])
  t.equal((await all(store)).length, 3, 'beginning again changes nothing')
})

test('a node that renews without end has sixteen numbers, and one line for all before them', async (t) => {
  const store = memoryStore({ clock })
  const nowMs = Date.now()
  const authority = await openAuthority(join(testFolder(t), 'authority'), nowMs)
  await beginIssuedCertificates({ store, clock }, authority.hash)
  const record = async (nodeName: string, lifeMs: number) => {
    const { certificate } = issueNode(authority, { nodeName, nowMs, lifeMs })
    await recordIssuedCertificate({ store, clock }, `system:node:${nodeName}`, certificate, authority.hash)
    return new X509Certificate(certificate)
  }
  await record('pi-2', 1_000_000)
  const longest = await record('pi-1', 9_000_000)
  const serials: string[] = []
  for (let i = 0; i < 40; i++) serials.push((await record('pi-1', 1_000_000)).serialNumber.toLowerCase())
  const [others, ...known] = (await all(store)).filter(({ user }) => user === 'system:node:pi-1')
  t.match(others, { serial: undefined, authority: authority.hash, notAfterMs: Date.parse(longest.validTo) })
  t.same(
    known.map(({ serial }) => serial),
    serials.slice(-16),
  )
  t.equal((await all(store)).length, 18, 'that of another node is kept')
})
