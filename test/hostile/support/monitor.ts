/**
 * A program of its own: asks the API as an administrator does, ten times a second, and how old the lease of an honest node is, while
 * a test attacks. Beside each request it asks an HTTP server, in a third process, whose answer takes a fixed time of a processor: by
 * how much longer that one takes, the machine is busy, not the controller. Prints one JSON line when its standard input ends.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, get as httpGet, Agent as PlainAgent } from 'node:http'
import { Agent, get as httpsGet } from 'node:https'
import { fileURLToPath } from 'node:url'
import { unstalledClock } from '../../../daemon/testing/unstalled-clock.ts'
import { adminOf } from './clients.ts'

export type Sample = {
  /**
   * From the request to the end of the answer, without the time in which this program got no turn, as while the whole machine stands still;
   * undefined: there was none within ten seconds.
   */
  readonly apiMs: number | undefined
  /** The same of the server whose answer takes `referenceCpuMs` of a processor. */
  readonly referenceMs: number
  readonly leaseAgeMs: number | undefined
}

export const referenceCpuMs = 10
const everyMs = 100
const deadlineMs = 10_000

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , role, kubeconfig = '', node = ''] = process.argv
  if (role === 'reference') await serveReference()
  else await watch(kubeconfig, node)
}

async function serveReference(): Promise<void> {
  const server = createServer((_request, response) => {
    const began = process.cpuUsage()
    for (let usedMs = 0; usedMs < referenceCpuMs; ) {
      const { user, system } = process.cpuUsage(began)
      usedMs = (user + system) / 1000
    }
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.send?.(server.address())
  process.once('disconnect', () => process.exit())
}

async function watch(kubeconfig: string, node: string): Promise<void> {
  const reference: ChildProcess = fork(fileURLToPath(import.meta.url), ['reference'])
  const [{ port }] = (await once(reference, 'message')) as [{ readonly port: number }]
  const { url, ...identity } = adminOf(await readFile(kubeconfig, 'utf8'))
  const agent = new Agent({ keepAlive: true, ...identity })
  const plain = new PlainAgent({ keepAlive: true })
  const lease = `${url}/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`
  const { monotonicMs } = unstalledClock()
  const samples: Sample[] = []
  let ended = false
  process.stdin.resume().once('end', () => {
    ended = true
  })
  process.stdout.write('started\n')
  while (!ended) {
    const next = performance.now() + everyMs
    const [api, { tookMs: referenceMs = deadlineMs }] = await Promise.all([
      timed(monotonicMs, (signal) => textOf(httpsGet(lease, { agent, signal }))),
      timed(monotonicMs, (signal) => textOf(httpGet({ port, agent: plain, signal }))),
    ])
    samples.push({ apiMs: api.tookMs, referenceMs, leaseAgeMs: leaseAge(api.text) })
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())))
  }
  process.stdout.write(`${JSON.stringify(samples)}\n`)
  reference.disconnect()
  agent.destroy()
  plain.destroy()
}

async function timed(
  nowMs: () => number,
  ask: (signal: AbortSignal) => Promise<string>,
): Promise<{ readonly tookMs: number | undefined; readonly text: string }> {
  const began = nowMs()
  try {
    const text = await ask(AbortSignal.timeout(deadlineMs))
    return { tookMs: nowMs() - began, text }
  } catch {
    return { tookMs: undefined, text: '' }
  }
}

function textOf(request: ReturnType<typeof httpGet>): Promise<string> {
  return new Promise((resolve, reject) => {
    request.on('error', reject)
    request.on('response', async (response) => {
      try {
        response.setEncoding('utf8')
        let text = ''
        for await (const part of response) text += part
        resolve(text)
      } catch (error) {
        reject(error)
      }
    })
  })
}

function leaseAge(text: string): number | undefined {
  if (text === '') return undefined
  const renewTime: unknown = JSON.parse(text)?.spec?.renewTime
  return typeof renewTime === 'string' ? Date.now() - Date.parse(renewTime) : undefined
}
