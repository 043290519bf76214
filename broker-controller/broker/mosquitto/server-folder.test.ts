import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { openAuthority } from '../../../certs/authority.ts'
import { issueNode } from '../../../certs/issue.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { beginIssuedCertificates, recordIssuedCertificate } from '../../store/certificates/issued-certificates.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { revoke } from '../../store/revocations.ts'
import { serverFolder } from './server-folder.ts'

const user = 'system:node:pi-1'
/** So that a name which returns does not wait for seconds. */
const speed = 50
const clock = {
  ...systemClock,
  monotonicMs: () => systemClock.monotonicMs() * speed,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / speed, signal),
}

/** Issue time of the certificates: one that is revoked in the second in which it is issued stays valid. */
const aMinuteAgo = () => Date.now() - 60_000

async function world(t: Test) {
  const folder = testFolder(t, { authority: {} })
  const authority = await openAuthority(join(folder, 'authority'), Date.now())
  const store = memoryStore({ clock })
  const log = quietLog(t)
  await beginIssuedCertificates({ store, clock }, authority.hash)
  const files = join(folder, 'files')
  const displaced: string[] = []
  const server: { error?: Error | undefined } = {}
  const displace = async (node: string) => {
    displaced.push(`${node} while the list has ${(await users()).join()}`)
    if (server.error !== undefined) throw server.error
  }
  const needs = { store, authority: () => authority, onAuthorityChange: () => undefined, displace, clock, log }
  const loop = serverFolder(needs, { folder: files, port: 8883, names: ['localhost'], controller: 'controller' })
  const stop = new AbortController()
  const running = loop.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  const read = (name: string) => readFile(join(files, name), 'utf8').catch(() => '')
  const users = async () => [...(await read('access-list')).matchAll(/^user (.*)$/gm)].map(([, name]) => name)
  const until = async (enough: () => Promise<boolean>) => {
    while (!(await enough())) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const joins = async (nowMs = aMinuteAgo(), nodeName = 'pi-1') => {
    const { certificate } = issueNode(authority, { nodeName, nowMs })
    await recordIssuedCertificate({ store, clock }, `system:node:${nodeName}`, certificate, authority.hash)
  }
  return { files, store, log, read, users, until, joins, displaced, server }
}

test('a node has its block from its certificate on, and none once it is revoked', async (t) => {
  const { files, store, read, users, until, joins } = await world(t)
  await until(async () => (await users()).length === 1)
  t.same(await users(), ['controller'])
  t.equal((await stat(join(files, 'access-list'))).mode & 0o777, 0o600)
  await joins()
  await until(async () => (await users()).includes(user))
  const { resourceVersion: _, ...metadata } = aNode({ name: 'pi-1' }).metadata
  await store.create('nodes', { ...aNode({ name: 'pi-1' }), metadata })
  const before = await read('revoked.crl')
  await revoke({ store, clock }, user, 'Revoked')
  await until(async () => !(await users()).includes(user))
  await until(async () => (await read('revoked.crl')) !== before)
})

test('a name that was revoked gets rights again after its earlier connection is ended, and once only', async (t) => {
  const { store, users, until, joins, displaced } = await world(t)
  await joins()
  await until(async () => (await users()).includes(user))
  await revoke({ store, clock }, user, 'Revoked')
  await until(async () => !(await users()).includes(user))
  t.same(displaced, [], 'there is nothing to end before')
  await joins(Date.now() + 3_600_000)
  await until(async () => (await users()).includes(user))
  t.same(displaced, ['pi-1 while the list has controller'])
  await joins()
  await revoke({ store, clock }, 'system:node:other', 'Revoked')
  await until(async () => (await users()).includes(user))
  t.equal(displaced.length, 1)
})

test('a name that is taken over has no rights before the connection of the earlier machine is ended', async (t) => {
  const { store, users, until, joins, displaced } = await world(t)
  await joins()
  await until(async () => (await users()).includes(user))
  await revoke({ store, clock }, user, 'TakenOver')
  await joins(Date.now() + 3_600_000)
  await until(async () => displaced.length > 0)
  await until(async () => (await users()).includes(user))
  t.same(displaced, ['pi-1 while the list has controller'])
})

test('a name whose earlier connection could not be ended has no rights until it is, unless no server runs', async (t) => {
  const { store, users, until, joins, log, server, displaced } = await world(t)
  await joins()
  await until(async () => (await users()).includes(user))
  await revoke({ store, clock }, user, 'Revoked')
  await until(async () => !(await users()).includes(user))
  server.error = new Error('No connection to the MQTT server: not within 10 s')
  await joins(Date.now() + 3_600_000)
  await joins(aMinuteAgo(), 'pi-2')
  await until(async () => (await users()).includes('system:node:pi-2'))
  t.notOk((await users()).includes(user), 'and other nodes do not wait for it')
  await joins(aMinuteAgo(), 'pi-3')
  await until(async () => (await users()).includes('system:node:pi-3'))
  await until(async () => displaced.length > 1)
  t.notOk((await users()).includes(user))
  t.match(log.messages('warn'), [/^Nodes have no rights on the MQTT server yet: earlier connections/])
  server.error = new Error('No connection to the MQTT server', {
    cause: Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:8883'), { code: 'ECONNREFUSED' }),
  })
  await joins(aMinuteAgo(), 'pi-4')
  await until(async () => (await users()).includes(user))
})

test('files that do not change are not written again', async (t) => {
  const { files, store, read, until, users } = await world(t)
  await until(async () => (await read('bramble.conf')) !== '')
  const times = async () =>
    Promise.all(
      ['ca.crt', 'server.crt', 'revoked.crl', 'bramble.conf'].map(async (name) => (await stat(join(files, name))).ino),
    )
  const before = await times()
  const { resourceVersion: _, ...metadata } = aNode({ name: 'pi-2' }).metadata
  await store.create('nodes', { ...aNode({ name: 'pi-2' }), metadata })
  await until(async () => (await users()).length === 2)
  t.same(await times(), before)
})
