/** An attacker with root on one machine of the fleet, and so with a valid certificate of a node. */
import type { TLSSocket } from 'node:tls'
import { test } from 'tap'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import { eventually } from '../support/wait.ts'
import { attackedFleet, honest, mallory, malloryOf, settled } from './support/attacked-fleet.ts'
import {
  type Answer,
  type ApiAttacker,
  connectPacket,
  openTls,
  patient,
  publishPacket,
  retainedPacket,
  stillOpen,
  subscribePacket,
} from './support/clients.ts'

test('an attacker with the certificate of a node', async (t) => {
  const fleet = await attackedFleet(t)
  const { controller } = fleet
  const { api, identity } = await malloryOf(fleet)
  t.teardown(async () => api.close())
  const baseMiB = await fleet.controllerMiB()
  const connection = async (...packets: readonly Buffer[]) => {
    const socket = await openTls(fleet.mqtt, identity)
    socket?.resume()
    socket?.write(Buffer.concat([connectPacket(mallory), ...packets]))
    return socket
  }

  await registered(api)
  await controller.kubectl('create', 'secret', 'generic', 'theirs', '--from-literal=password=of-the-honest-node')
  await controller.kubectlWith(
    podManifest({
      name: 'web',
      image,
      spec: { nodeName: honest },
      container: { env: [{ name: 'P', valueFrom: secretKey('theirs') }] },
    }),
    ...['apply', '-f', '-'],
  )
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')

  await t.test('reads no Secret of another node', async (t) => {
    const secrets = '/api/v1/namespaces/default/secrets'
    t.equal((await api.send('GET', `${secrets}/theirs`)).status, 403)
    t.equal((await api.send('GET', secrets)).status, 403)
    t.equal((await api.send('GET', `${secrets}?fieldSelector=metadata.name=theirs`)).status, 403)
    t.equal((await api.send('GET', '/api/v1/namespaces/kube-system/secrets')).status, 403)

    const made = [
      mirrorPod('mirror', mallory),
      mirrorPod('mirror', honest),
      { ...mirrorPod('plain', mallory), metadata: { name: 'plain' } },
    ]
    for (const pod of made) await api.sendJson('POST', '/api/v1/namespaces/default/pods', pod)
    t.equal((await api.send('GET', `${secrets}/theirs`)).status, 403, 'not by a mirror pod that names it')

    const pod = JSON.parse((await fleet.admin.send('GET', '/api/v1/namespaces/default/pods/web')).text)
    const taken = { ...pod, spec: { ...pod.spec, nodeName: mallory } }
    for (const one of [pod, taken, { ...taken, metadata: { ...taken.metadata, name: 'made-up', uid: 'made-up' } }]) {
      const { status } = await api.sendJson('POST', `/api/v1/nodes/${mallory}/checkpoint`, checkpoint([one]))
      t.ok(status >= 400, `a checkpoint with made-up pods: ${status}`)
    }
    t.equal((await api.send('GET', `${secrets}/theirs`)).status, 403, 'not by a checkpoint that names it')
  })

  await t.test('changes nothing of another node, its pods and its lease', async (t) => {
    const patch = { 'content-type': 'application/merge-patch+json' }
    for (const [method, path, body] of [
      ['PATCH', `/api/v1/nodes/${honest}`, { spec: { unschedulable: true } }],
      ['PATCH', `/api/v1/nodes/${honest}/status`, { status: { conditions: [] } }],
      ['DELETE', `/api/v1/nodes/${honest}`, undefined],
      ['DELETE', `/api/v1/nodes/${mallory}`, undefined],
      ['PATCH', `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${honest}`, { spec: {} }],
      ['PATCH', '/api/v1/namespaces/default/pods/web/status', { status: { phase: 'Failed' } }],
      ['DELETE', '/api/v1/namespaces/default/pods/web', undefined],
      ['PATCH', `/api/v1/nodes/${mallory}`, { spec: { taints: [] } }],
      ['PATCH', `/api/v1/nodes/${mallory}`, { spec: { configSource: { configMap: { name: 'x' } } } }],
      ['PATCH', `/api/v1/nodes/${mallory}`, { metadata: { labels: { 'node-restriction.kubernetes.io/x': 'y' } } }],
      ['POST', `/api/v1/namespaces/default/pods/web/eviction`, {}],
      ['POST', `/api/v1/namespaces/default/pods/web/binding`, { target: { name: mallory } }],
    ] as const) {
      const { status } = await api.sendJson(method, path, body, method === 'PATCH' ? patch : {})
      t.ok(status === 403 || status === 405 || status === 422, `${method} ${path}: ${status}`)
    }
  })

  await t.test('receives and publishes nothing in the name of another node', async (t) => {
    const socket = await openTls(fleet.mqtt, identity)
    const received: Buffer[] = []
    socket?.on('data', (part: Buffer) => received.push(part))
    const topics = [`bramble/v1/nodes/${honest}/desired`, 'bramble/v1/#', '#', '$SYS/#', 'bramble/v1/nodes/+/desired']
    socket?.write(Buffer.concat([connectPacket(honest), subscribePacket({ qos: 1 }, ...topics)]))
    for (const topic of ['status', 'lease', 'connection', 'pods/x']) {
      socket?.write(
        publishPacket(`bramble/v1/nodes/${honest}/${topic}`, '{"state":"lost","bootID":"x","conditions":[]}'),
      )
    }
    await controller.kubectl('label', 'pod', 'web', 'changed=yes')
    const acknowledged = eventually('the subscription is answered', () => Buffer.concat(received).includes(0x90), {
      withinMs: 5_000,
    })
    await acknowledged.catch(() => undefined)
    t.notMatch(Buffer.concat(received).toString('utf8'), /of-the-honest-node|"web"/)
    socket?.destroy()
    const { text } = await fleet.admin.send('GET', `/api/v1/nodes/${honest}`)
    t.match(text, /KubeletReady/)
  })

  await t.test('gives its pods no address of others', async (t) => {
    const labels = { app: 'taken' }
    const pod = JSON.parse(podManifest({ name: 'taken', image, spec: { nodeName: mallory, hostNetwork: true } }))
    const body = { ...pod, metadata: { ...pod.metadata, labels } }
    const made = await fleet.admin.sendJson('POST', '/api/v1/namespaces/default/pods', body)
    const { uid } = JSON.parse(made.text).metadata
    const spec = { selector: labels, ports: [{ port: 80 }], publishNotReadyAddresses: true }
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'taken' }, spec }
    await fleet.admin.sendJson('POST', '/api/v1/namespaces/default/services', service)
    const victim = await eventually('the pod of the victim has an address', async () => {
      const { status } = JSON.parse((await fleet.admin.send('GET', '/api/v1/namespaces/default/pods/web')).text)
      return status.podIP !== undefined && status
    })
    const addresses = ['192.0.2.7', victim.hostIP, victim.podIP, '169.254.169.254', '127.0.0.1']
    for (const ip of addresses) {
      const conditions = [{ type: 'Ready', status: 'True', message: ip }]
      const status = { phase: 'Running', conditions, podIP: ip, podIPs: [{ ip }], hostIP: ip }
      const report = { uid, namespace: 'default', name: 'taken', observedResourceVersion: '1', status }
      const socket = await connection(retainedPacket(`bramble/v1/nodes/${mallory}/pods/${uid}`, JSON.stringify(report)))
      await eventually(`the report with ${ip} is stored`, async () =>
        (await fleet.admin.send('GET', '/api/v1/namespaces/default/pods/taken')).text.includes(`"message":"${ip}"`),
      )
      socket?.destroy()
      const seen = JSON.parse((await fleet.admin.send('GET', '/api/v1/namespaces/default/pods/taken')).text).status
      t.notOk(seen.podIP ?? seen.hostIP, `${ip} by a report`)
      const patched = await api.sendJson(
        'PATCH',
        '/api/v1/namespaces/default/pods/taken/status',
        { status },
        {
          'content-type': 'application/strategic-merge-patch+json',
        },
      )
      t.equal(patched.status, 403, `${ip} by a patch`)
    }
    const slices = await controller.kubectl(
      ...['get', 'endpointslices', '-l', 'kubernetes.io/service-name=taken', '-o', 'jsonpath={.items[*].endpoints}'],
    )
    t.equal(slices.replace('null', '').replace('[]', ''), '', 'and no Service leads there')
    t.match(await controller.kubectl('get', 'events'), /AddressNotOwned/)
    await fleet.admin.send('DELETE', '/api/v1/namespaces/default/pods/taken?gracePeriodSeconds=0')
  })

  await t.test('fills no log with refused topics', async (t) => {
    const before = fleet.logLength()
    await fleet.unnoticed(t, async () => {
      for (let turn = 0; turn < 20; turn++) {
        const topic = `bramble/v1/nodes/${honest}/${'x'.repeat(60_000)}`
        const socket = await connection(...Array.from({ length: 10 }, () => publishPacket(topic, 'x')))
        await closed(socket)
      }
    })
    t.ok(fleet.logLength() - before < 100_000, `${fleet.logLength() - before} characters were logged`)
  })

  await t.test('stops the controller with no message that is nested deeper than its stack', async (t) => {
    const nested = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
    await fleet.unnoticed(t, async () => {
      for (const topic of ['lease', 'status', 'stats', 'connection', 'pods/x']) {
        const body = `{"digest":${nested},"conditions":${nested},"state":${nested},"summary":${nested}}`
        for (const sent of [nested, body]) {
          await closed(await connection(publishPacket(`bramble/v1/nodes/${mallory}/${topic}`, sent)))
        }
      }
    })
  })

  await t.test('stops the controller with no amount that is longer than a quantity once it is printed', async (t) => {
    const long = `${'9'.repeat(55)}.99999999`
    const status = JSON.stringify({ capacity: { cpu: long }, allocatable: { cpu: long, memory: long } })
    await fleet.unnoticed(t, async () => {
      await closed(await connection(publishPacket(`bramble/v1/nodes/${mallory}/status`, status)))
      const patch = { 'content-type': 'application/merge-patch+json' }
      const answer = await api.sendJson(
        'PATCH',
        `/api/v1/nodes/${mallory}/status`,
        { status: JSON.parse(status) },
        patch,
      )
      t.ok(answer.status === 400 || answer.status === 422, `${answer.status}`)
    })
  })

  await t.test('makes its own object and those of its pods only so large', async (t) => {
    await fleet.unnoticed(t, async () => {
      for (let turn = 0; turn < 20; turn++) {
        const conditions = Array.from({ length: 1_500 }, (_, index) => ({ type: `T${turn}-${index}`, status: 'True' }))
        const socket = await connection(
          publishPacket(`bramble/v1/nodes/${mallory}/status`, JSON.stringify({ conditions })),
        )
        await closed(socket)
        const patch = { status: { conditions: conditions.map((one) => ({ ...one, message: 'x'.repeat(100) })) } }
        await api.sendJson('PATCH', `/api/v1/nodes/${mallory}/status`, patch, {
          'content-type': 'application/strategic-merge-patch+json',
        })
      }
    })
    const { text } = await fleet.admin.send('GET', `/api/v1/nodes/${mallory}`)
    // The limit of any Node is 512 KiB: see docs/limits.md.
    t.ok(text.length < 600_000, `its Node has ${text.length} bytes`)
  })

  await t.test('fills no store with events, mirror pods and requests', async (t) => {
    const { text } = await patient(api).send('GET', `/api/v1/nodes/${mallory}`)
    const { uid } = JSON.parse(text).metadata
    const answers = new Map<string, number>()
    const count = async (what: string, asked: Promise<Answer>) => {
      const key = `${what} ${(await asked.catch(() => refused)).status}`
      answers.set(key, (answers.get(key) ?? 0) + 1)
    }
    await fleet.unnoticed(t, async () => {
      for (let first = 0; first < 200; first += 10) {
        const pods = Array.from({ length: 10 }, (_, index) => floodPod(`flood-${first + index}`, uid))
        const created = pods.map((pod) => patient(api).sendJson('POST', '/api/v1/namespaces/default/pods', pod))
        await Promise.all(created.map((answer) => count('pods', answer)))
      }
      for (let turn = 0; turn < 40; turn++) {
        await count('events', api.sendJson('POST', '/api/v1/namespaces/default/events', event(turn, 2_000_000)))
      }
    })
    t.comment(`answers: ${JSON.stringify(Object.fromEntries(answers))}`)
    t.equal(answers.get('pods 201'), mostMirrors)
    t.equal(answers.get('pods 403'), 200 - mostMirrors)
    const { items } = JSON.parse((await fleet.admin.send('GET', '/api/v1/namespaces/default/events')).text)
    const bytes = Math.max(...items.map((item: unknown) => JSON.stringify(item).length))
    t.ok(bytes <= 16 * 1024, `the largest Event has ${bytes} bytes`)
    t.comment(
      `controller: ${Math.round(baseMiB)} MiB before, ${Math.round(await settled(fleet, baseMiB + 250))} MiB after`,
    )
  })

  await t.test('occupies the controller with no body and no patch', (t) =>
    fleet.unnoticed(t, async () => {
      const path = `/api/v1/nodes/${mallory}/status`
      const keys = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`key${index}`, `value${index}`]))
      const operations = Array.from({ length: 5_000 }, (_, index) => ({
        op: 'add',
        path: `/metadata/annotations/k${index}`,
        value: 'v',
      }))
      const sent: readonly (readonly [type: string, body: unknown])[] = [
        ['application/merge-patch+json', { metadata: { annotations: keys } }],
        ['application/merge-patch+json', { status: { capacity: keys } }],
        [
          'application/strategic-merge-patch+json',
          { status: { images: Array.from({ length: 20_000 }, () => ({ names: ['x'] })) } },
        ],
        [
          'application/strategic-merge-patch+json',
          {
            status: { addresses: Array.from({ length: 20_000 }, (_, index) => ({ type: `T${index}`, address: 'x' })) },
          },
        ],
        ['application/json-patch+json', [{ op: 'add', path: '/metadata/annotations', value: {} }, ...operations]],
      ]
      for (const [type, body] of sent) {
        const { status } = await patient(api).sendJson('PATCH', path, body, { 'content-type': type })
        t.comment(`${type}: ${status}`)
      }
      const yaml = Array.from({ length: 20_000 }, (_, index) => `key${index}: 1`).join('\n')
      const headers = { 'content-type': 'application/yaml' }
      const { status } = await patient(api).send('PUT', path, { body: yaml, headers })
      t.ok(status >= 400, `YAML: ${status}`)
    }),
  )

  await t.test('keeps others from nothing by asking all the time', (t) =>
    fleet.unnoticed(t, async () => {
      const end = performance.now() + 5_000
      const limited: number[] = []
      await Promise.all(
        Array.from({ length: 32 }, async () => {
          while (performance.now() < end) {
            const { status, headers } = await api.send('GET', '/api/v1/nodes?limit=1').catch(() => refused)
            if (status === 429) limited.push(Number(headers['retry-after']))
          }
        }),
      )
      t.comment(`${limited.length} requests were limited`)
      t.ok(
        limited.every((seconds) => seconds >= 1),
        'each with the time after which to ask again',
      )
    }),
  )

  await t.test('keeps others from nothing with messages', (t) =>
    fleet.unnoticed(t, async () => {
      const status = JSON.stringify({ conditions: [{ type: 'Ready', status: 'True', message: 'x'.repeat(100_000) }] })
      const message = publishPacket(`bramble/v1/nodes/${mallory}/status`, status)
      const heartbeat = publishPacket(`bramble/v1/nodes/${mallory}/lease`, '{"seq":1,"digest":"x"}')
      let socket = await connection()
      const end = performance.now() + 5_000
      while (performance.now() < end) {
        if (!socket?.writable) socket = await connection()
        for (const packet of [message, ...Array.from({ length: 200 }, () => heartbeat)]) socket?.write(packet)
        if (socket?.writableNeedDrain) await Promise.race([drained(socket), pause(200)])
      }
      socket?.destroy()
    }),
  )

  await t.test('holds no memory with watches that it does not read', async (t) => {
    await fleet.unnoticed(t, async () => {
      const sockets = await Promise.all(Array.from({ length: 200 }, () => openTls(fleet.api, identity)))
      for (const socket of sockets) {
        socket?.pause()
        socket?.write(
          `GET /api/v1/pods?watch=true&fieldSelector=spec.nodeName%3D${mallory} HTTP/1.1\r\nHost: x\r\n\r\n`,
        )
      }
      const pod = JSON.parse(podManifest({ name: 'large', image, spec: { nodeName: mallory } }))
      await fleet.admin.sendJson('POST', '/api/v1/namespaces/default/pods', pod)
      for (let turn = 0; turn < 60; turn++) {
        const annotations = { large: `${turn}${'x'.repeat(200_000)}` }
        const patch = { 'content-type': 'application/merge-patch+json' }
        await fleet.admin.sendJson(
          'PATCH',
          '/api/v1/namespaces/default/pods/large',
          { metadata: { annotations } },
          patch,
        )
      }
      t.comment(
        `${stillOpen(sockets)} of ${sockets.length} watches are open, ${Math.round(await fleet.controllerMiB())} MiB`,
      )
      t.ok((await fleet.controllerMiB()) < 600, 'what waits for readers is bounded')
      for (const socket of sockets) socket?.destroy()
    })
    await settled(fleet, baseMiB + 250)
  })
})

const refused: Answer = { status: 0, headers: {}, text: '' }

function secretKey(name: string) {
  return { secretKeyRef: { name, key: 'password' } }
}

/** As a machine that is to do its work would: it is a node like any other then. */
async function registered(api: ApiAttacker): Promise<void> {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: mallory } }
  await api.sendJson('POST', '/api/v1/nodes', node)
}

/** Limit for a node whose status has no capacity: docs/limits.md. */
const mostMirrors = 110

/** It refers to a Secret. */
function mirrorPod(name: string, nodeName: string) {
  const env = [{ name: 'P', valueFrom: secretKey('theirs') }]
  return { ...floodPod(name, 'x', nodeName), spec: { nodeName, containers: [{ name: 'c', image, env }] } }
}

/** One that a node may create, of 15 kB. */
function floodPod(name: string, uid: string, nodeName = mallory) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${name}-${nodeName}`,
      namespace: 'default',
      annotations: {
        'kubernetes.io/config.mirror': 'x',
        'kubernetes.io/config.source': 'file',
        pad: 'x'.repeat(15_000),
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid, controller: true }],
    },
    spec: { nodeName, containers: [{ name: 'c', image }] },
  }
}

function checkpoint(pods: readonly unknown[]) {
  return { apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store: 'x', pods, complete: true }
}

function event(number: number, bytes: number) {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `flood-${number}`, namespace: 'default' },
    involvedObject: { kind: 'Node', name: mallory, namespace: 'default' },
    reason: 'Flood',
    message: 'x'.repeat(bytes),
    type: 'Normal',
  }
}

/** Once the other side has read all of it, or has closed it. */
async function closed(socket: TLSSocket | undefined): Promise<void> {
  if (socket === undefined) return
  socket.end()
  await Promise.race([new Promise((resolve) => socket.once('close', resolve)), pause(2_000)])
  socket.destroy()
}

function drained(socket: TLSSocket): Promise<unknown> {
  return new Promise((resolve) => socket.once('drain', resolve))
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
