/** Probes over the network are asked by the agent itself: nothing is written to the disk for them, no process is started. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { type Test, test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { isServing, loneNode } from './support/lone-node.ts'
import { container, eventually, image } from './support/pods.ts'

const rounds = 5

test('HTTP, TCP and gRPC probes cost no write and no process', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const node = await loneNode(t, dockerd)
  const asked = { http: 0, tcp: 0, grpc: 0 }
  const http = createServer((_, response) => {
    asked.http++
    response.end()
  })
  const tcp = createTcpServer((socket) => {
    asked.tcp++
    socket.on('error', () => undefined).end()
  })
  const grpc = createHttp2Server()
  grpc.on('stream', (stream) => {
    asked.grpc++
    stream.on('error', () => undefined)
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(Buffer.of(0, 0, 0, 0, 2, 8, 1))
  })
  const often = { periodSeconds: 1, timeoutSeconds: 60, failureThreshold: 1000 }
  const pod = aPod({
    name: 'asked',
    uid: 'uid-asked',
    spec: { hostNetwork: true },
    containers: [
      container('main', 'exec sleep 100000', {
        readinessProbe: { ...often, httpGet: { port: await opened(t, http) } },
        livenessProbe: { ...often, grpc: { port: await opened(t, grpc) } },
      }),
      container('second', 'exec sleep 100000', {
        readinessProbe: { ...often, tcpSocket: { port: await opened(t, tcp) } },
      }),
    ],
  })
  await node.want(pod)
  const agent = node.startAgent()
  await eventually(async () => (await node.runtime.listContainers()).filter(isServing([pod])).length === 2)
  const askedFor = async (times: number) => {
    const before = { ...asked }
    await eventually(
      () => (['http', 'tcp', 'grpc'] as const).every((kind) => asked[kind] - before[kind] >= times),
      () => `${JSON.stringify(asked)}\n${JSON.stringify(agent.lines.slice(-5))}`,
    )
  }
  await askedFor(1)
  // The agent writes something now and then, after its start above all. Were it for probes, no window would be free of it.
  await eventually(async () => {
    const before = await costOf(agent.pid)
    await askedFor(rounds)
    const after = await costOf(agent.pid)
    if (!isDeepStrictEqual(after, before)) t.comment(before, after)
    return isDeepStrictEqual(after, before)
  })
  t.equal(await agent.stop(), 0)
})

/** What the process caused to be written, and the memory faults of those children of it that have ended. */
async function costOf(pid: number) {
  const io = await readFile(`/proc/${pid}/io`, 'utf8')
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return {
    writtenBytes: Number(/^write_bytes: (\d+)$/m.exec(io)?.[1]),
    childFaults: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[8]),
    children: children.trim(),
  }
}

async function opened(t: Test, server: Server | ReturnType<typeof createHttp2Server>): Promise<number> {
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0)
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
