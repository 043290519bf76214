/** A fleet in the store of a controller that is stopped, and the processes that act as its nodes. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { aNode, aPod } from '../../api/testing/builders.ts'
import type { EtcdPlace } from '../../broker-controller/store/etcd/etcd-place.ts'
import { openEtcdStore } from '../../broker-controller/store/etcd/etcd-store.ts'
import { openSqliteStore } from '../../broker-controller/store/sqlite/sqlite-store.ts'
import { openAuthority } from '../../certs/authority.ts'
import { issueNode } from '../../certs/issue.ts'
import { systemClock as clock, rfc3339 } from '../../daemon/clock.ts'
import { openLog } from '../../daemon/log.ts'
import type { Answer, LoadSettings, Order } from './load.ts'
import { nodeName, podName, podUID } from './node.ts'

export type FleetFiles = {
  readonly folder: string
  /** Data directory of a controller that has run once. */
  readonly dataDir: string
  readonly nodes: number
  readonly pods: number
  /** Where the store of the controller is; undefined: in its data directory. */
  readonly etcd?: EtcdPlace | undefined
}

/** Nodes and pods in the store, as the API would have put them there. Gives the file of their certificates, and their authority. */
export async function prepareFleet({ folder, dataDir, nodes, pods, etcd }: FleetFiles) {
  const log = openLog({ level: 'warn', format: 'text', write: (line) => void process.stderr.write(line) })
  const { store } =
    etcd === undefined
      ? await openSqliteStore({ path: join(dataDir, 'store.db'), clock, log })
      : await openEtcdStore({ ...etcd, clock, log })
  const creationTimestamp = rfc3339(Date.now())
  const atOnce = etcd === undefined ? 500 : 50
  for (let first = 0; first < nodes; first += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, nodes - first) }, (_, i) => first + i)
    await Promise.all(
      some.flatMap((index) => {
        const { status: _, ...node } = aNode({ name: nodeName(index) })
        const made = { ...node, metadata: { name: nodeName(index), creationTimestamp } }
        return [
          store.create('nodes', made),
          ...Array.from({ length: pods }, (_, pod) => store.create('pods', podOf(index, pod))),
        ]
      }),
    )
  }
  await store.close()
  const [signer, certificates] = [
    await openAuthority(join(dataDir, 'authority'), Date.now()),
    join(folder, 'certificates.json'),
  ]
  const issued = Array.from({ length: nodes }, (_, index) =>
    issueNode(signer, { nodeName: nodeName(index), nowMs: Date.now() }),
  )
  await writeFile(certificates, JSON.stringify(issued), { mode: 0o600 })
  return { certificates, ca: signer.trusted }
}

function podOf(index: number, pod: number) {
  const { status: _, ...made } = aPod({ name: podName(index, pod), nodeName: nodeName(index) })
  return { ...made, metadata: { name: podName(index, pod), namespace: 'default', uid: podUID(index, pod) } }
}

export interface FleetLoad {
  /** Resolves when every process has done it. */
  ordered(order: Order): Promise<Omit<Answer, 'done'>>
  kill(): void
}

export type FleetLoadSettings = Omit<LoadSettings, 'first' | 'count'> & {
  readonly nodes: number
  readonly processes: number
}

/** Processes with the nodes divided among them, which wait for an order. */
export async function startLoads({ nodes, processes, ...settings }: FleetLoadSettings): Promise<FleetLoad> {
  const script = fileURLToPath(new URL('./load.js', import.meta.url))
  const loads: ChildProcess[] = []
  for (let i = 0; i < processes; i++) {
    const load = fork(script, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    loads.push(load)
    const [first, end] = [Math.floor((nodes * i) / processes), Math.floor((nodes * (i + 1)) / processes)]
    await orderedOf(load, { order: 'settings', settings: { ...settings, first, count: end - first } })
  }
  return {
    async ordered(order) {
      const answers = await Promise.all(loads.map((load) => orderedOf(load, order)))
      const sum = (of: (answer: Answer) => number) => answers.reduce((total, answer) => total + of(answer), 0)
      return { beats: sum(({ beats }) => beats), failures: sum(({ failures }) => failures) }
    },
    kill() {
      for (const load of loads) load.kill('SIGKILL')
    },
  }
}

async function orderedOf(load: ChildProcess, order: Order): Promise<Answer> {
  const answered = once(load, 'message')
  load.send(order)
  const [answer] = (await answered) as [Answer]
  return answer
}
