/** A thousand watches and a thousand streams at one time, of several clients and nodes. */
import { readdir, readFile } from 'node:fs/promises'
import { type ClientHttp2Session, connect } from 'node:http2'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import { eventually } from '../support/wait.ts'
import { attackedFleet, honest, settled } from './support/attacked-fleet.ts'
import { adminOf } from './support/clients.ts'
import { hollowNode } from './support/hollow-node.ts'

const many = 1_000
/** docs/mqtt.md: streams of a node, and all of them. */
const limits = { node: 64, all: 512 }
/** The server takes a hundred requests at a time on a connection. */
const onConnection = 100
const atOnce = 16
const hollow = Array.from({ length: limits.all / limits.node - 1 }, (_, i) => `hollow-${i + 1}`)
const users = ['anna', 'bert', 'carla', 'dirk']

type Opened = {
  readonly status: number
  readonly retryAfter: number
  /** Resolves with the next bytes. */
  next(): Promise<Buffer>
}

test('a thousand watches and a thousand streams', async (t) => {
  const fleet = await attackedFleet(t)
  const { controller, agents } = fleet
  const { url, ...admin } = adminOf(await readFile(controller.kubeconfig, 'utf8'))
  const web = podManifest({ name: `on-${honest}`, image, spec: { nodeName: honest }, command: echoing })
  await controller.kubectlWith(web, 'apply', '-f', '-')
  const nodes = await Promise.all(hollow.map((name) => hollowNode(fleet, name, 'here\n')))
  t.teardown(() => nodes.map((node) => node.close()))
  for (const name of hollow) {
    await controller.kubectlWith(
      podManifest({ name: `on-${name}`, image, spec: { nodeName: name } }),
      'apply',
      '-f',
      '-',
    )
  }
  await controller.kubectl('wait', '--for=condition=Ready', `pod/on-${honest}`, '--timeout=80s')
  const agentPid = agents[0]?.pid ?? 0
  const before = {
    controllerMiB: await fleet.controllerMiB(),
    agentMiB: await residentMiB(agentPid),
    controller: await descriptors(controller.program.pid),
    agent: await descriptors(agentPid),
  }

  const connections: ClientHttp2Session[] = []
  const commands: WebSocket[] = []
  const closeAll = () => {
    for (const one of connections) one.destroy()
    for (const one of commands) one.terminate()
  }
  t.teardown(closeAll)
  let requests = 0
  const get = (path: string, headers: Headers = {}): Promise<Opened> => {
    if (requests++ % onConnection === 0) connections.push(connect(url, admin).on('error', () => undefined))
    const connection = connections.at(-1)
    if (connection === undefined) throw new Error('There is no connection')
    return opened(connection, path, headers)
  }
  const exec = (path: string, headers: Headers): Promise<Opened> => {
    const socket = new WebSocket(`${url.replace('https', 'wss')}${path}`, ['v5.channel.k8s.io'], { ...admin, headers })
    commands.push(socket)
    return openedSocket(socket)
  }
  const as = (user: string): Headers => ({ 'impersonate-user': user, 'impersonate-group': 'system:masters' })

  await fleet.unnoticed(t, async () => {
    const path = '/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name%3Dchanged'
    const watches = await limited(range(many), () => get(path))
    t.equal(watches.filter(({ status }) => status === 200).length, many, 'every watch is open')

    const streams = await limited(range(many), (i) => {
      const node = [honest, ...hollow][i % (hollow.length + 1)]
      const headers = as(users[Math.floor(i / (hollow.length + 1)) % users.length] ?? '')
      const pod = `/api/v1/namespaces/default/pods/on-${node}`
      // A command is a process, of which the honest machine runs a few.
      return node === honest && i % 5 === 0
        ? exec(`${pod}/exec?command=echo&command=here&stdout=true`, headers)
        : get(`${pod}/log?follow=true`, headers)
    })
    const open = streams.filter(({ status }) => status === 200 || status === 101)
    const refused = streams.filter(({ status }) => status === 429)
    t.comment(`${open.length} streams are open, ${refused.length} refused`)
    t.same(
      streams.map(({ status }) => status).filter((status) => ![200, 101, 429].includes(status)),
      [],
      'each is one or the other',
    )
    // A command that has ended gives its place to another stream.
    const isWithin = open.length >= limits.all && open.length <= limits.all + commands.length
    t.ok(isWithin, 'as many are open as the limits allow')
    t.ok(
      refused.every(({ retryAfter }) => retryAfter >= 1),
      'the others are refused with the time after which to try again',
    )
    for (const stream of open) {
      const bytes = await stream.next()
      if (!bytes.includes('here')) t.fail(`a stream carries ${bytes}`)
    }
    await controller.kubectl('create', 'configmap', 'changed')
    for (const watch of watches) {
      const bytes = await watch.next()
      if (!bytes.includes('"ADDED"')) t.fail(`a watch carries ${bytes}`)
    }
    const [controllerMiB, agentMiB] = [await fleet.controllerMiB(), await residentMiB(agentPid)]
    t.comment(`controller: ${before.controllerMiB.toFixed(0)} MiB, now ${controllerMiB.toFixed(0)} MiB`)
    t.comment(`agent: ${before.agentMiB.toFixed(0)} MiB, now ${agentMiB.toFixed(0)} MiB`)
    t.ok(controllerMiB <= before.controllerMiB + 200, 'the memory of the controller is bounded')
    t.ok(agentMiB <= before.agentMiB + 40, 'and that of the agent')
    closeAll()
    await eventually('all sessions have ended', () => nodes.every((node) => node.sessions() === 0))
  })

  await eventually('the controller has closed every connection', async () => {
    return (await descriptors(controller.program.pid)) <= before.controller + 5
  })
  await eventually('and the agent', async () => (await descriptors(agentPid)) <= before.agent + 5)
  await settled(fleet, before.controllerMiB + 150)
  t.equal(await controller.kubectl('exec', `on-${honest}`, '--', 'echo', 'here'), 'here\n')
})

const echoing = ['sh', '-c', 'echo here; exec sleep 1000']

type Headers = { readonly [name: string]: string }

/** Resolves when the answer has begun. */
function opened(connection: ClientHttp2Session, path: string, headers: Headers): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const stream = connection.request({ ':path': path, ...headers })
    const read = pieces()
    stream.on('error', reject).on('data', read.push)
    stream.once('response', (answer) => {
      const status = Number(answer[':status'])
      resolve({ status, retryAfter: Number(answer['retry-after']), next: read.next })
    })
  })
}

/** The same of a WebSocket. */
function openedSocket(socket: WebSocket): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const read = pieces()
    socket.on('error', reject).on('message', (data: Buffer) => read.push(data))
    socket.once('open', () => resolve({ status: 101, retryAfter: Number.NaN, next: read.next }))
    socket.once('unexpected-response', (_, { statusCode = 0, headers }) => {
      resolve({ status: statusCode, retryAfter: Number(headers['retry-after']), next: read.next })
    })
  })
}

function pieces() {
  const waiting: Buffer[] = []
  let taken: (() => void) | undefined
  return {
    push(piece: Buffer): void {
      waiting.push(piece)
      taken?.()
    },
    async next(): Promise<Buffer> {
      while (waiting.length === 0) {
        await new Promise<void>((resolve) => {
          taken = resolve
        })
      }
      return waiting.shift() ?? Buffer.alloc(0)
    },
  }
}

const range = (length: number) => Array.from({ length }, (_, i) => i)

/** Runs `once` for each, a few at a time, and gives the results in the order of `all`. */
async function limited<T>(all: readonly number[], once: (item: number) => Promise<T>): Promise<readonly T[]> {
  const results: T[] = []
  const left = [...all]
  const work = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) results[item] = await once(item)
  }
  await Promise.all(range(atOnce).map(work))
  return results
}

async function residentMiB(pid: number): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

/** How many files and sockets a process has open. */
async function descriptors(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length
}
