/**
 * No pod that the API accepts holds the event loop of an agent for more than 100 ms, from its admission to its removal: of each list and map of
 * a pod one with as many items as a body may have, and those that are costly by what their fields mean together. The engine and the disk are
 * in memory, so all that is measured are the agent's own decisions.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { ContainerRuntime } from '../agent/runtime/runtime.ts'
import { fakeRuntime } from '../agent/testing/fake-runtime.ts'
import { fakeVolumes } from '../agent/testing/fake-volumes.ts'
import { image } from '../agent/testing/node-in-memory.ts'
import { startPods } from '../agent/testing/pod-world.ts'
import { decode } from '../api/decode.ts'
import { administrator } from '../api/identity.ts'
import type { Container, Pod } from '../api/pod.ts'
import { mostContainers } from '../api/validation/pod-validation.ts'
import { mostValues } from '../broker-controller/apiserver/wire/body-limits.ts'
import { builtInKinds } from '../broker-controller/assembly/control-plane.ts'
import { acceptedWords } from '../broker-controller/testing/budget/accepted-words.ts'
import { handmadeObjects } from '../broker-controller/testing/budget/handmade-objects.ts'
import { mostItems } from '../broker-controller/testing/budget/object-cases.ts'
import { largeObjects } from '../broker-controller/testing/largest-objects.ts'
import { fakeClock } from '../daemon/testing/fake-clock.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { type BudgetCase, turnsAboveBudget } from '../daemon/testing/turn-budget.ts'

const kind = builtInKinds.all.find(({ name }) => name === 'pods')
if (kind === undefined) throw new Error('There are no pods')

/** As the API stores it; undefined: it refuses this one. */
function accepted(given: unknown): Pod | undefined {
  const decoded = decode(kind?.schema ?? {}, given)
  if (!decoded.ok) return undefined
  const whole = kind?.withDefaults?.(decoded.value as never) ?? decoded.value
  const problems = kind?.validateCreate?.(whole as never, { nowMs: 0, requester: administrator }) ?? []
  return problems.length === 0 ? (whole as unknown as Pod) : undefined
}

/** Init and ephemeral containers have the fields of containers; what the status has is the agent's own. */
const isOfPod = (field: string) => !/(init|ephemeral)Containers\[\]|^status/.test(field)

/** As many of them as the API accepts. */
function withMostContainers(given: unknown): unknown {
  const pod = given as Pod
  const { containers = [], initContainers = [] } = pod.spec
  const few = initContainers.slice(0, mostContainers - 1)
  return {
    ...pod,
    spec: {
      ...pod.spec,
      ...(pod.spec.initContainers && { initContainers: few }),
      containers: containers.slice(0, mostContainers - few.length),
    },
  }
}

function* largePods(): Generator<readonly [what: string, pod: Pod]> {
  if (kind === undefined) return
  for (const { field, object } of largeObjects(kind, acceptedWords(kind, isOfPod))) {
    if (!isOfPod(field)) continue
    const pod = accepted(withMostContainers(object(mostItems(object, mostValues), 'a')))
    if (pod !== undefined) yield [field, pod]
  }
  for (const { what, path, object } of handmadeObjects()) {
    const pod = path.endsWith('/pods') ? accepted(withMostContainers(object('a'))) : undefined
    if (pod !== undefined) yield [what, pod]
  }
}

/** An engine answers in a later turn: the agent's decisions of one turn are those between two calls. */
function answering(engine: ContainerRuntime): ContainerRuntime {
  return new Proxy(engine, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver)
      if (typeof value !== 'function') return value
      return (...args: readonly unknown[]) => {
        const result: unknown = Reflect.apply(value, target, args)
        return result instanceof Promise ? nextTurn().then(() => result) : result
      }
    },
  })
}

const mostTurns = 2_000

/** On a machine that has its image: it is admitted, started, reported, changed and removed. */
function life(t: Test, what: string, { metadata, spec, ...pod }: Pod) {
  const present = (container: Container): Container => ({ ...container, image, imagePullPolicy: 'IfNotPresent' })
  const bound: Pod = {
    ...pod,
    metadata: { ...metadata, namespace: 'default', uid: what, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      ...spec,
      ...(spec.initContainers && { initContainers: spec.initContainers.map(present) }),
      containers: spec.containers.map(present),
      nodeName: 'pi-01',
      terminationGracePeriodSeconds: 0,
    },
  }
  const clock = fakeClock()
  const engine = fakeRuntime(clock)
  engine.images.add(image)
  const volumes = fakeVolumes()
  volumes.messages = new Map()
  volumes.etc = new Map()
  const world = startPods({ runtime: answering(engine), clock, log: quietLog(t), volumes })
  t.teardown(() => world.stop())
  const name = metadata.name ?? ''
  const isOver = () => ['Running', 'Failed'].includes(world.status(name)?.phase ?? '')
  const passes = async (isDone: () => boolean) => {
    for (let turn = 0; turn < mostTurns && !isDone(); turn++) await clock.advance(turn < 20 ? 100 : 1)
  }
  const all = (bound.spec.initContainers ?? []).length + bound.spec.containers.length
  const act = async () => {
    world.want(bound)
    await passes(() => isOver() && (engine.containers.length > all || world.status(name)?.phase === 'Failed'))
    world.want({ ...bound, metadata: { ...bound.metadata, annotations: { changed: 'yes' } } })
    await clock.advance(2_000)
    world.want()
    await passes(() => engine.containers.length === 0)
  }
  const hasRun = () => world.statuses(name).some(({ phase }) => phase === 'Running')
  return { what, bytes: JSON.stringify(bound).length, act, hasRun }
}

test('no pod that the API accepts holds the event loop of its agent for longer than its budget', async (t) => {
  const lives: ReturnType<typeof life>[] = []
  const cases = function* (): Generator<BudgetCase> {
    for (const [what, pod] of largePods()) {
      const one = life(t, what, pod)
      lives.push(one)
      yield one
    }
  }
  const { count, above } = await turnsAboveBudget(cases())
  t.same(above, [])
  t.ok(count > 40, `${count} pods`)
  const [ran, others] = [lives.filter(({ hasRun }) => hasRun()), lives.filter(({ hasRun }) => !hasRun())]
  t.ok(ran.length > 30, `${ran.length} of them ran, and not: ${others.map(({ what }) => what).join(', ')}`)
})
