import { type Test, test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { fakeRuntime } from '../testing/fake-runtime.ts'
import { memoryCheckpoint, startPods } from '../testing/pod-world.ts'

const image = 'busybox:1.36'
const listening = ['sh', '-c', 'trap "exit 0" TERM; sleep 1000']

function aNode(t: Test, more: Partial<Parameters<typeof startPods>[0]> = {}) {
  const clock = fakeClock()
  const runtime = fakeRuntime(clock)
  runtime.images.add(image)
  const log = quietLog(t)
  const checkpoint = memoryCheckpoint()
  const start = () => {
    const world = startPods({ runtime, clock, log, checkpoint, ...more })
    t.teardown(() => world.stop())
    return world
  }
  const running = () => runtime.containers.filter(({ state }) => state === 'running')
  return { clock, runtime, log, checkpoint, start, running, world: start() }
}

function running(name: string, command: readonly string[] = listening, more: Parameters<typeof aPod>[0] = {}) {
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command }
  return aPod({ name, containers: [container], ...more })
}

test('a wanted pod runs, and says so', async (t) => {
  const { clock, world } = aNode(t)
  world.want(running('web'))
  await clock.advance(1_000)
  t.match(world.status('web'), {
    phase: 'Running',
    podIP: /^10\.1\.0\./,
    hostIP: '192.0.2.11',
    qosClass: 'BestEffort',
    containerStatuses: [{ name: 'main', ready: true, restartCount: 0, state: { running: {} } }],
    conditions: [
      { type: 'PodReadyToStartContainers', status: 'True' },
      { type: 'Initialized', status: 'True' },
      { type: 'Ready', status: 'True' },
      { type: 'ContainersReady', status: 'True' },
      { type: 'PodScheduled', status: 'True' },
    ],
  })
  t.same(world.told(), [
    'Pulled: Container image "busybox:1.36" already present on machine',
    'Created: Created container: main',
    'Started: Started container main',
  ])
  t.match(world.events[0], {
    involvedObject: { name: 'web', fieldPath: 'spec.containers{main}' },
    source: { host: 'pi-01' },
  })
})
