import { test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, statusOf } from './support/pods.ts'
import { limitMachine, smallMachine, whyNoSmallMachine } from './support/small-machine.ts'

const mib = 2 ** 20
const limitBytes = 256 * mib

/** Allocates this much on demand, and keeps it. */
const holding = (megabytes: number) =>
  `until [ -e /tmp/go ]; do sleep 0.1; done; (head -c ${megabytes}m /dev/zero; sleep 100000) | tail -c ${megabytes}m`
const resident = 'while :; do sleep 0.1; done'

test('a machine short of memory, with real limits', { skip: whyNoSmallMachine() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  await limitMachine(dockerd, 'memory.limit_in_bytes', limitBytes)

  t.test('the pod that asked least and took most goes, and the node is well again', async (t) => {
    const node = await smallMachine(t, dockerd, {
      evictionHard: { 'memory.available': '96Mi' },
      evictionPressureTransitionPeriod: '60s',
    })
    const modest = aPod({
      name: 'modest',
      containers: [container('main', holding(20), { resources: { requests: { memory: '64Mi' } } })],
    })
    const greedy = aPod({ name: 'greedy', containers: [container('main', holding(150))] })
    const critical = aPod({ name: 'critical', priority: 2_000_001_000, containers: [container('main', resident)] })
    node.want(modest, greedy, critical)
    for (const name of ['modest', 'greedy', 'critical']) await node.until(name, isReady)
    await node.untilCondition('MemoryPressure', 'False')

    await node.within('modest', 'main', 'touch /tmp/go')
    await node.within('greedy', 'main', 'touch /tmp/go')
    await node.untilCondition('MemoryPressure', 'True')
    // While one is evicted none is admitted: pressure is over only some time after that.
    const hopeful = aPod({ name: 'hopeful', containers: [container('main', resident)] })
    node.want(modest, greedy, critical, hopeful)
    const evicted = await node.evicted('greedy')
    t.match(evicted, {
      reason: 'Evicted',
      message:
        /^The node was low on resource: memory\. Threshold quantity: 96Mi, available: \d+(Ki|Mi)?\. Container main was using \d+(Ki|Mi)?, request is 0, has larger consumption of memory\. $/,
    })
    const disruption = evicted.conditions?.find(({ type }) => type === 'DisruptionTarget')
    t.match(disruption, { status: 'True', reason: 'TerminationByKubelet', message: evicted.message })
    t.ok(node.nodeEventTexts().includes('EvictionThresholdMet: Attempting to reclaim memory'))
    t.ok(node.eventTexts().includes(`Evicted: ${evicted.message}`))

    t.match(await node.until('hopeful', ({ phase }) => phase === 'Failed'), {
      reason: 'Evicted',
      message: 'Pod was rejected: The node had condition: [MemoryPressure]. ',
    })
    await node.untilCondition('MemoryPressure', 'False')
    const late = aPod({ name: 'late', containers: [container('main', resident)] })
    node.want(modest, greedy, critical, hopeful, late)
    await node.until('late', isReady)
    for (const name of ['modest', 'critical']) t.equal(node.status(name)?.phase, 'Running', name)
  })

  t.test('whom the kernel kills was killed for memory, also when the engine does not see it', async (t) => {
    const node = await smallMachine(t, dockerd, { evictionHard: {} }, { blindEngine: true })
    const bursting = 'until [ -e /tmp/go ]; do sleep 0.1; done; exec tail -c 600m /dev/zero'
    node.want(aPod({ name: 'bursting', restartPolicy: 'Never', containers: [container('main', bursting)] }))
    await node.until('bursting', isReady)
    await node.within('bursting', 'main', 'touch /tmp/go')
    const over = await node.until('bursting', ({ phase }) => phase === 'Failed')
    t.match(statusOf(over, 'main'), { state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } })
  })

  t.test('as many processes as the machine may have are nearly reached', async (t) => {
    await limitMachine(dockerd, 'pids.max', 120)
    const node = await smallMachine(t, dockerd, {
      evictionHard: { 'pid.available': '40' },
      evictionPressureTransitionPeriod: '20s',
    })
    const forking =
      'until [ -e /tmp/go ]; do sleep 0.1; done; for i in $(seq 90); do sleep 100000 & done; while :; do sleep 1; done'
    const few = aPod({ name: 'few', containers: [container('main', resident)] })
    const many = aPod({ name: 'many', containers: [container('main', forking)] })
    node.want(few, many)
    for (const name of ['few', 'many']) await node.until(name, isReady)
    await node.within('many', 'main', 'touch /tmp/go')
    await node.untilCondition('PIDPressure', 'True')
    t.match(await node.evicted('many'), {
      reason: 'Evicted',
      message: /^The node was low on resource: pids\. Threshold quantity: 40, available: \d+\. $/,
    })
    t.ok(node.nodeEventTexts().includes('NodeHasInsufficientPID: Node pi-01 status is now: NodeHasInsufficientPID'))
    await eventually(() => node.condition('PIDPressure') === 'False')
    t.equal(node.status('few')?.phase, 'Running')
  })
})
