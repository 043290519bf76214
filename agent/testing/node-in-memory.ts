/** A node whose engine, clock, volumes and checkpoint are in memory, and the pods that run on it. */
import type { Test } from 'tap'
import type { Pod } from '../../api/pod.ts'
import { aPod } from '../../api/testing/builders.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { fakeRuntime } from './fake-runtime.ts'
import { fakeVolumes } from './fake-volumes.ts'
import { memoryCheckpoint, type PodWorldNeeds, startPods } from './pod-world.ts'

/** The engine has it. */
export const image = 'busybox:1.36'
/** It ends as soon as it is asked to. */
export const listening = ['sh', '-c', 'trap "exit 0" TERM; sleep 1000']

/** Its pods are in `world`; `start` is the next agent on the same machine, with what the last one remembered. */
export function nodeInMemory(t: Test, more: Partial<PodWorldNeeds> = {}) {
  const clock = fakeClock()
  const runtime = fakeRuntime(clock)
  runtime.images.add(image)
  const log = quietLog(t)
  const checkpoint = memoryCheckpoint()
  const volumes = fakeVolumes()
  volumes.messages = new Map()
  volumes.etc = new Map()
  const start = (changed: Partial<PodWorldNeeds> = {}) => {
    const world = startPods({ runtime, clock, log, checkpoint, volumes, ...more, ...changed })
    t.teardown(() => world.stop())
    return world
  }
  const running = () => runtime.containers.filter(({ state }) => state === 'running')
  return {
    clock,
    runtime,
    log,
    checkpoint,
    messages: volumes.messages,
    etc: volumes.etc,
    start,
    running,
    world: start(),
  }
}

export function podRunning(
  name: string,
  command: readonly string[] = listening,
  more: Parameters<typeof aPod>[0] = {},
): Pod {
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command }
  return aPod({ name, containers: [container], ...more })
}

/** As it is read from a manifest file whose hash is this. */
export function podFromFile(hash: string, itsImage = image): Pod {
  return podRunning('web-pi-01', listening, {
    uid: hash,
    containers: [{ name: 'main', image: itsImage, command: listening }],
    annotations: { 'kubernetes.io/config.source': 'file' },
  })
}

/** What the control plane shows of the static pod of this hash. */
export function mirrorOf(hash: string, uid: string): Pod {
  return aPod({ name: 'web-pi-01', uid, annotations: { 'kubernetes.io/config.mirror': hash } })
}
