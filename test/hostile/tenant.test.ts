/**
 * A tenant: a service account with the stock role `edit` in one namespace, and nothing else. Each attack is a function, which is given
 * the fleet, the tenant and an honest neighbour in another namespace. A new one needs its line in `attacks`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import { eventually } from '../support/wait.ts'
import { type AttackedFleet, attackedFleet, honest, settled } from './support/attacked-fleet.ts'
import { type Tenant, tenantOf } from './support/tenant.ts'

type Attack = (
  t: Test,
  given: { readonly fleet: AttackedFleet; readonly tenant: Tenant; readonly neighbour: Tenant },
) => Promise<void>

const attacks: { readonly [what: string]: Attack } = {
  'takes no watches, pages and shells from others with streams of many accounts': takesStreams,
  'takes no requests from others as accounts that it impersonates': takesRequests,
  'keeps no watch and no shell once its right is gone': keepsStreams,
}

test('an attacker with the role edit in one namespace', async (t) => {
  const fleet = await attackedFleet(t)
  const [tenant, neighbour] = [await tenantOf(t, fleet, 'tenant'), await tenantOf(t, fleet, 'neighbour')]
  const baseMiB = await fleet.controllerMiB()
  for (const [what, attack] of Object.entries(attacks)) {
    await t.test(what, async (t) => void (await fleet.unnoticed(t, () => attack(t, { fleet, tenant, neighbour }))))
  }
  const mib = await settled(fleet, baseMiB + 150)
  t.comment(`controller: ${Math.round(baseMiB)} MiB before, ${Math.round(mib)} MiB after`)
})

const maps = ({ namespace }: Tenant) => `/api/v1/namespaces/${namespace}/configmaps`
const secrets = ({ namespace }: Tenant) => `/api/v1/namespaces/${namespace}/secrets`

async function takesStreams(t: Test, { tenant, neighbour }: Parameters<Attack>[1]): Promise<void> {
  const tokens = [tenant.token]
  for (const name of ['a', 'b', 'c', 'd']) tokens.push(await tenant.account(name))
  const connections = []
  for (const token of tokens) {
    connections.push(await tenant.streams('/ui/api/stream', 20, token))
    connections.push(await tenant.streams(`${maps(tenant)}?watch=1`, 90))
  }
  // Those that are refused keep trying, as fast as they may.
  for (let round = 0; round < 5; round++) {
    const watches = await Promise.all([1, 2, 3].map(() => neighbour.stream(`${maps(neighbour)}?watch=1`)))
    const page = await neighbour.stream('/ui/api/stream')
    t.same(
      [...watches, page].map(({ status }) => status),
      [200, 200, 200, 200],
    )
    await Promise.all(tokens.map((token) => tenant.streams(`${secrets(tenant)}?watch=1`, 20, token)))
    t.ok(
      [...watches, page].every(({ isOpen }) => isOpen()),
      'they are not ended for it',
    )
  }
  for (const { socket } of connections) socket.destroy()
}

async function takesRequests(t: Test, { tenant, neighbour }: Parameters<Attack>[1]): Promise<void> {
  const over = new AbortController()
  let sent = 0
  const users = Array.from({ length: 40 }, (_, at) => `system:serviceaccount:tenant:none-${at}`)
  const flood = users.map(async (user) => {
    for (; !over.signal.aborted; sent++) {
      await tenant.api.send('GET', '/api', { headers: { 'impersonate-user': user } }).catch(() => undefined)
    }
  })
  const codes = []
  for (let count = 0; count < 40; count++) {
    codes.push((await neighbour.api.send('GET', maps(neighbour))).status)
    await pause(250)
  }
  over.abort()
  await Promise.all(flood)
  t.comment(`${sent} requests of the tenant`)
  t.same([...new Set(codes)], [200])
}

async function keepsStreams(t: Test, { fleet, tenant, neighbour }: Parameters<Attack>[1]): Promise<void> {
  const { kubectl, kubectlWith } = fleet.controller
  const { namespace } = tenant
  const pod = podManifest({ name: 'shell', image, spec: { nodeName: honest } })
  await kubectlWith(pod, '-n', namespace, 'apply', '-f', '-')
  await kubectl('-n', namespace, 'wait', '--for=condition=Ready', 'pod/shell', '--timeout=80s')
  const upgrade = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    'Sec-WebSocket-Protocol: v4.channel.k8s.io',
  ]
  const pods = `/api/v1/namespaces/${namespace}/pods/shell`
  const command = ['sleep', '1000'].map((one) => `command=${one}`).join('&')
  const [watch, log, shell, other] = await Promise.all([
    tenant.stream(`${secrets(tenant)}?watch=1`),
    tenant.stream(`${pods}/log?follow=1`),
    tenant.stream(`${pods}/exec?${command}&stdout=1`, upgrade),
    neighbour.stream(`${secrets(neighbour)}?watch=1`),
  ])
  t.same(
    [watch, log, shell, other].map(({ status }) => status),
    [200, 200, 101, 200],
  )
  await kubectl('-n', namespace, 'delete', 'rolebinding', 'robot')
  await eventually('its streams end', () => ![watch, log, shell].some(({ isOpen }) => isOpen()))
  await kubectl('-n', namespace, 'create', 'secret', 'generic', 'late')
  t.notMatch(watch.text(), /"late"/)
  t.ok(other.isOpen(), 'those of others go on')
  t.equal((await tenant.api.send('GET', secrets(tenant))).status, 403)
}
