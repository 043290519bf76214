/** Agents as programs, with a pod each on one real Docker: joined to the first of two controllers, with what an observer sees of them. */
import type { Test } from 'tap'
import { inParallel } from '../../daemon/in-parallel.ts'
import { startDockerd } from '../support/dockerd.ts'
import { type AgentOptions, agentCommand, type Controller, startAgent } from '../support/fleet.ts'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import type { Program } from '../support/program.ts'
import { eventually } from '../support/wait.ts'
import type { ApiSession } from './api-session.ts'

type Condition = { readonly type: string; readonly status: string; readonly lastTransitionTime: string }
type Listed<Item> = { readonly items: readonly Item[] }
type ListedNode = {
  readonly metadata: { readonly name: string }
  readonly status?: { readonly conditions?: readonly Condition[] }
}
type ListedPod = {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string }
  readonly status?: {
    readonly phase?: string
    readonly containerStatuses?: readonly { readonly containerID?: string; readonly restartCount: number }[]
  }
}
type ListedEvent = { readonly reason: string; readonly lastTimestamp: string }

export type AgentsNeeds = {
  readonly controller: Controller
  /** Folder of the agents' data. */
  readonly folder: string
  readonly count: number
  /** How many are started at a time. */
  readonly atOnce: number
  readonly settings?: AgentOptions['settings']
}

export type AgentsWithPods = {
  readonly names: readonly string[]
  readonly agents: readonly Program[]
  /** Creates the pods of these nodes that are not there: one that was slow to start may have left its node. */
  createMissing(present: readonly string[]): Promise<void>
  /** Containers that Docker runs. */
  runningContainers(): Promise<number>
}

/** All are Ready and all pods run when it resolves. A pod leaves its node one second after that is not ready, or unreachable. */
export async function startAgents(
  t: Test,
  { controller, folder, count, atOnce, settings = {} }: AgentsNeeds,
): Promise<AgentsWithPods> {
  const docker = await startDockerd(t)
  await docker.importImage(image)
  const names = Array.from({ length: count }, (_, i) => `pi-${i + 1}`)
  const line = await controller.joinLine()
  const agents: Program[] = []
  await inParallel(names, atOnce, async (name) => {
    const dataDir = `${folder}/${name}`
    const joined = await agentCommand(...line, '--no-run', '--node-name', name, '--data-dir', dataDir)
    if (joined.code !== 0) throw new Error(`${name} cannot join: ${joined.stdout}${joined.stderr}`)
    const agent = await startAgent(t, { dataDir, dockerSocket: docker.socket, settings })
    agents.push(agent)
    await agent.logged('Node status posted', 300_000)
    await controller.kubectlWith(pod(name), 'apply', '-f', '-')
  })
  return {
    names,
    agents,
    async createMissing(present) {
      for (const name of names) {
        if (present.some((one) => one.startsWith(`${podName(name)} `))) continue
        await controller.kubectlWith(pod(name), 'apply', '-f', '-')
      }
    },
    runningContainers: async () => (await docker.docker.listContainers()).length,
  }
}

function pod(node: string): string {
  const tolerations = ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 1,
  }))
  return podManifest({ name: podName(node), image, spec: { nodeName: node, tolerations } })
}

function podName(node: string): string {
  return `on-${node}`
}

/** State of each pod: its container and restarts, and whether it is being deleted; sorted. */
export async function podStates(session: ApiSession): Promise<readonly string[]> {
  const { items } = await listed<ListedPod>(session, '/api/v1/namespaces/default/pods')
  return items
    .map(({ metadata: { name, uid, deletionTimestamp }, status }) => {
      const { containerID = 'no container', restartCount = 0 } = status?.containerStatuses?.[0] ?? {}
      const end = deletionTimestamp === undefined ? 'stays' : 'is deleted'
      return `${name} ${uid} ${status?.phase} ${containerID} ${restartCount} ${end}`
    })
    .toSorted()
}

/** Resolves with the states of so many pods when all run. `createMissing`: is called with those that are there, until then. */
export function allRun(
  session: ApiSession,
  count: number,
  createMissing: (present: readonly string[]) => Promise<void> = async () => undefined,
): Promise<readonly string[]> {
  const look = async () => {
    const found = await podStates(session)
    if (found.length === count && found.every((one) => /Running docker:\S+ \d+ stays$/.test(one))) return found
    await createMissing(found)
    return undefined
  }
  return eventually('all pods run', look, { withinMs: 600_000, everyMs: 2_000 })
}

/** Names of nodes that are not Ready. */
export async function notReady(session: ApiSession): Promise<readonly string[]> {
  const { items } = await listed<ListedNode>(session, '/api/v1/nodes')
  const isReady = ({ status }: ListedNode) =>
    status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True')
  return items.filter((node) => !isReady(node)).map(({ metadata }) => metadata.name)
}

/** Nodes whose lease was renewed after this moment. */
export async function renewedSince(session: ApiSession, sinceMs: number): Promise<number> {
  type ListedLease = { readonly spec?: { readonly renewTime?: string } }
  const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  const { items } = await listed<ListedLease>(session, path)
  return items.filter(({ spec }) => Date.parse(spec?.renewTime ?? '') >= sinceMs).length
}

/** How often each reason was given since then, as text. */
export async function eventReasons(session: ApiSession, sinceMs: number): Promise<string> {
  const { items } = await listed<ListedEvent>(session, '/api/v1/events')
  const counts = new Map<string, number>()
  for (const { reason, lastTimestamp } of items) {
    // Times of Events have whole seconds.
    if (Date.parse(lastTimestamp) >= sinceMs - 1_000) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  return [...counts].map(([reason, count]) => `${reason} ${count}`).join(', ') || 'none'
}

export const evictionReasons = /TaintManagerEviction|Evicted|Killing/

async function listed<Item>(session: ApiSession, path: string): Promise<Listed<Item>> {
  return eventually(`an answer to ${path}`, async () => {
    const answer = await session.send('GET', path)
    return answer?.status === 200 && (answer.body as Listed<Item>)
  })
}
