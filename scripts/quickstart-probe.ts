/**
 * What quickstart.sh needs and a shell cannot find out without tools that may be missing. Answers by its exit
 * status, 0 for yes, and with a line of text where one helps.
 */
import { readFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parse } from 'yaml'
import { caHash } from '../certs/ca-hash.ts'

type Answer = { readonly yes: boolean; readonly line?: string }

const questions: { readonly [question: string]: (...args: string[]) => Promise<Answer> } = {
  docker: dockerAnswers,
  eviction: evictionOf,
  free: portIsFree,
  joined: isJoined,
  member: isMember,
  obstacle: obstacleIn,
  ready: nodeIsReady,
  'stop-pods': stopPods,
}

const [name = '', ...rest] = process.argv.slice(2)
const question = questions[name]
if (question === undefined) throw new Error(`Unknown question ${name}: one of ${Object.keys(questions).join(', ')}`)
const { yes, line } = await question(...rest)
if (line !== undefined) console.log(line)
process.exitCode = yes ? 0 : 1

/** Checks that a Docker daemon answers on this socket. */
async function dockerAnswers(socketPath = ''): Promise<Answer> {
  try {
    const { status } = await ask(httpRequest, { socketPath, path: '/_ping' })
    return { yes: status === 200 }
  } catch (error) {
    return { yes: false, line: messageOf(error) }
  }
}

/** Reads a report of the doctor from standard input. Prints the disks for which the agent will evict pods, and the remedy. */
async function evictionOf(): Promise<Answer> {
  const parts: string[] = []
  for await (const part of process.stdin.setEncoding('utf8')) parts.push(String(part))
  const { findings } = Object(JSON.parse(parts.join('')))
  const found = (Array.isArray(findings) ? findings : []).map(field).find((of) => of('check') === 'eviction')
  if (found?.('verdict') !== 'problem') return { yes: true }
  return { yes: false, line: `    Warning: ${found('found')}\n    ${found('remedy')}` }
}

/** Prints why the node has no part in the network of its fleet, and the remedy. */
async function obstacleIn(file = ''): Promise<Answer> {
  try {
    const [, content = ''] = (await readFile(file, 'utf8')).split('\n')
    const obstacle = field(JSON.parse(content))
    const meaning = "Pods of this node run in Docker's own network, without Services."
    return { yes: false, line: `    ${obstacle('found')}.\n    ${meaning} ${obstacle('remedy')}.` }
  } catch {
    return { yes: true }
  }
}

async function portIsFree(port = '0'): Promise<Answer> {
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(Number(port), resolve)
    })
    return { yes: true }
  } catch (error) {
    return { yes: false, line: messageOf(error) }
  } finally {
    server.close()
  }
}

/** Checks that this identity belongs to this authority and to a controller at this port. Prints the node's name. */
async function isJoined(identityFile = '', authorityFile = '', apiPort = ''): Promise<Answer> {
  try {
    const identity = field(JSON.parse(await readFile(identityFile, 'utf8')))
    const authority = await readFile(authorityFile, 'utf8')
    const same = identity('ca').trim() === authority.trim() && new URL(identity('apiUrl')).port === apiPort
    return { yes: same, line: identity('nodeName') }
  } catch (error) {
    return { yes: false, line: messageOf(error) }
  }
}

/** Checks that this identity belongs to the fleet whose authority has this hash; '' stands for any. Prints the node's name. */
async function isMember(identityFile = '', hash = ''): Promise<Answer> {
  try {
    const identity = field(JSON.parse(await readFile(identityFile, 'utf8')))
    return { yes: hash === '' || caHash(identity('ca')) === hash, line: identity('nodeName') }
  } catch (error) {
    return { yes: false, line: messageOf(error) }
  }
}

/**
 * Waits up to `seconds` for the node to be Ready with a heartbeat after `since` (milliseconds since 1970): what an agent
 * reported before it was stopped does not count.
 */
async function nodeIsReady(kubeconfig = '', node = '', seconds = '60', since = '0'): Promise<Answer> {
  const until = performance.now() + Number(seconds) * 1000
  const server = await serverOf(kubeconfig)
  for (;;) {
    const seen = await lookAt(server, node, Number(since))
    if (seen.yes || performance.now() > until) return seen
    await delay(200)
  }
}

async function lookAt(server: RequestOptions, node: string, since: number): Promise<Answer> {
  try {
    const answers = await Promise.all([
      ask(httpsRequest, { ...server, path: `/api/v1/nodes/${node}` }),
      ask(httpsRequest, { ...server, path: `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}` }),
    ])
    const [object, lease] = answers.map(({ body }) => JSON.parse(body))
    if (answers.some(({ status }) => status !== 200)) return { yes: false, line: object?.message ?? lease?.message }
    const ready = object?.status?.conditions?.find(({ type }: { type: string }) => type === 'Ready')
    const hasHeartbeat = Date.parse(lease?.spec?.renewTime ?? '') >= since
    const state = `Ready is ${ready?.status ?? 'not known'}${ready?.message ? `: ${ready.message}` : ''}`
    return { yes: ready?.status === 'True' && hasHeartbeat, line: hasHeartbeat ? state : 'No heartbeat came yet' }
  } catch (error) {
    return { yes: false, line: messageOf(error) }
  }
}

/** The server of the administrator's kubeconfig, by its address on this machine, and the certificate to show it. */
async function serverOf(kubeconfig: string): Promise<RequestOptions> {
  const config = parse(await readFile(kubeconfig, 'utf8'))
  const clusters: readonly { readonly name?: unknown; readonly cluster?: unknown }[] = config.clusters ?? []
  const cluster = field((clusters.find(({ name }) => name === 'bramble-local') ?? clusters[0])?.cluster)
  const user = field(config.users?.[0]?.user)
  const { hostname, port } = new URL(cluster('server'))
  return {
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port,
    ca: decoded(cluster('certificate-authority-data')),
    cert: decoded(user('client-certificate-data')),
    key: decoded(user('client-key-data')),
  }
}

/**
 * Stops, and keeps, the running containers of this node's pods in a Docker that outlives the agent, and removes the
 * node's networks: their addresses are free for another fleet, and the agent creates a network again at its next start.
 */
async function stopPods(socketPath = '', identityFile = ''): Promise<Answer> {
  const node = field(JSON.parse(await readFile(identityFile, 'utf8')))('nodeName')
  const filters = encodeURIComponent(JSON.stringify({ label: [`bramble.dev/node=${node}`] }))
  const { body } = await ask(httpRequest, { socketPath, path: `/containers/json?filters=${filters}` })
  const containers: readonly { readonly Id: string }[] = JSON.parse(body)
  const stopped = await Promise.all(
    containers.map(({ Id }) =>
      ask(httpRequest, { socketPath, method: 'POST', path: `/containers/${Id}/stop?t=10`, timeout: 30_000 }),
    ),
  )
  const listed = await ask(httpRequest, { socketPath, path: `/networks?filters=${filters}` })
  const networks: readonly { readonly Id: string }[] = JSON.parse(listed.body)
  const removed = await Promise.all(
    networks.map(({ Id }) =>
      ask(httpRequest, { socketPath, method: 'DELETE', path: `/networks/${Id}`, timeout: 30_000 }),
    ),
  )
  return {
    yes: [...stopped, ...removed].every(({ status }) => status < 400),
    line: `    Containers stopped: ${containers.length}, networks removed: ${removed.filter(({ status }) => status < 400).length}`,
  }
}

type Reply = { readonly status: number; readonly body: string }

function ask(request: typeof httpRequest | typeof httpsRequest, options: RequestOptions): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const asked = request({ timeout: 5_000, agent: false, ...options }, async (response) => {
      try {
        const parts: string[] = []
        response.setEncoding('utf8')
        for await (const part of response) parts.push(String(part))
        resolve({ status: response.statusCode ?? 0, body: parts.join('') })
      } catch (error) {
        reject(error)
      }
    })
    asked.on('timeout', () => asked.destroy(new Error(`No answer to ${options.path} in time`)))
    asked.on('error', reject)
    asked.end()
  })
}

/** Reads text fields of something decoded from a file, and names the one that is missing. */
function field(from: unknown): (name: string) => string {
  return (name) => {
    const value = typeof from === 'object' && from !== null ? Reflect.get(from, name) : undefined
    if (typeof value !== 'string') throw new Error(`No ${name} there`)
    return value
  }
}

function decoded(base64: string): Buffer {
  return Buffer.from(base64, 'base64')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
