/** Pods on a real engine, in a test: an agent's pod half, and how to wait for its reports. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { dockerRuntime } from '../../agent/adapters/docker/docker-runtime.ts'
import { tarOf } from '../../agent/pods/images/tar.ts'
import type { ContainerRuntime } from '../../agent/runtime/runtime.ts'
import { type PodWorld, type PodWorldNeeds, startPods } from '../../agent/testing/pod-world.ts'
import type { Container, ContainerStatus, PodStatus } from '../../api/pod.ts'
import { systemClock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { TestDockerd } from './dockerd.ts'
import { patience } from './patience.ts'

export const image = 'test/busybox:1'
/** Ends at once on SIGTERM. */
export const listening = ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.1; done']

/** Only what never comes takes this long. */
const patienceMs = 90_000

export type NodeOnDocker = PodWorld & {
  readonly runtime: ContainerRuntime
  /** The first such status reported since the one that was waited for before: however short it lasts, it is found. */
  until(name: string, wanted: (status: PodStatus) => boolean): Promise<PodStatus>
  /** Runs a command in a container of the pod, to its end: `sh -c script`. */
  within(podName: string, containerName: string, script: string): Promise<void>
  /** Makes `/tmp/go` in a running container. No process does it: that would end with a container that ends on it. */
  go(podName: string, containerName: string): Promise<void>
}

export function nodeOnDocker(t: Test, dockerd: TestDockerd, more: Partial<PodWorldNeeds> = {}): NodeOnDocker {
  const runtime = dockerRuntime({ socketPath: dockerd.socket, nodeName: 'pi-01' })
  const seen = new Map<string, number>()
  const world = startPods({ runtime, clock: systemClock, log: quietLog(t), ...more })
  t.teardown(async () => {
    await world.stop()
    for (const { id } of await runtime.listContainers()) await runtime.removeContainer(id)
  })
  const running = async (podName: string, containerName: string) => {
    const found = (await runtime.listContainers()).find(
      ({ identity, state }) =>
        identity.podName === podName && identity.containerName === containerName && state === 'running',
    )
    return found?.id ?? ''
  }
  return {
    ...world,
    runtime,
    async until(name, wanted) {
      await eventually(
        () => {
          const past = seen.get(name) ?? 0
          const index = world.statuses(name).findIndex((status, i) => i >= past && wanted(status))
          if (index >= 0) seen.set(name, index)
          return index >= 0
        },
        () => `Pod ${name} is ${JSON.stringify(world.status(name))}\n${world.eventTexts().join('\n')}`,
      )
      return world.statuses(name)[seen.get(name) ?? 0] ?? {}
    },
    async within(podName, containerName, script) {
      const id = await running(podName, containerName)
      const { exitCode, output } = await runtime.exec(id, ['sh', '-c', script], patienceMs)
      if (exitCode !== 0) throw new Error(`${script} in ${containerName} of ${podName} gave ${exitCode}: ${output}`)
    },
    async go(podName, containerName) {
      const archive = tarOf([{ path: 'go', content: Buffer.alloc(0), mode: 0o644 }])
      await dockerd.docker.getContainer(await running(podName, containerName)).putArchive(archive, { path: '/tmp' })
    },
  }
}

export function container(name: string, script: string, more: Partial<Container> = {}): Container {
  return { name, image, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', script], ...more }
}

export async function eventually(
  condition: () => boolean | Promise<boolean>,
  why: () => string = () => 'It does not come',
  timeoutMs = patienceMs,
): Promise<void> {
  for (const lastMs = performance.now() + timeoutMs * patience; !(await condition()); ) {
    if (performance.now() > lastMs) throw new Error(why())
    await delay(25)
  }
}

export function isReady({ conditions = [] }: PodStatus): boolean {
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}

export function statusOf({ containerStatuses = [], initContainerStatuses = [] }: PodStatus, name: string) {
  return [...initContainerStatuses, ...containerStatuses].find((one) => one.name === name)
}

export function runsSince(status: ContainerStatus | undefined): string | undefined {
  return status?.state?.running?.startedAt
}

/** Standard output so far. */
export async function outputOf({ docker }: TestDockerd, podUID: string, name: string): Promise<string> {
  const label = [`io.kubernetes.pod.uid=${podUID}`, `io.kubernetes.container.name=${name}`]
  const [row] = await docker.listContainers({ all: true, filters: { label } })
  if (row === undefined) return ''
  let frames = await docker.getContainer(row.Id).logs({ stdout: true, stderr: false, follow: false })
  let text = ''
  // Eight bytes of head each, the last four of them its length.
  while (frames.length >= 8) {
    const length = frames.readUInt32BE(4)
    text += frames.subarray(8, 8 + length)
    frames = frames.subarray(8 + length)
  }
  return text
}

/** What runs, by Docker's own word. */
export async function runningNames({ docker }: TestDockerd): Promise<readonly string[]> {
  const running = await docker.listContainers()
  return running.flatMap((container) => container.Names)
}

/** Removes all present containers. An agent, or the engine for one that was killed, may be removing some of them. */
export async function removeAllContainers({ docker }: TestDockerd): Promise<void> {
  const ids = (await docker.listContainers({ all: true })).map(({ Id }) => Id)
  const remove = async (id: string) => {
    try {
      await docker.getContainer(id).remove({ force: true })
    } catch (error) {
      // 404: it is gone; 409: its removal is in progress.
      const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined
      if (status !== 404 && status !== 409) throw error
    }
  }
  await Promise.all(ids.map(remove))
  await eventually(
    async () => !(await docker.listContainers({ all: true })).some(({ Id }) => ids.includes(Id)),
    () => 'Containers that were removed are still there',
  )
}
