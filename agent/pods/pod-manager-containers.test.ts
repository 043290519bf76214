import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { image, listening, nodeInMemory, podRunning } from '../testing/node-in-memory.ts'

test('a container that crashes waits as Kubernetes makes it wait', async (t) => {
  const { clock, runtime, running, world } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(1_000)
  const crash = async () => {
    const container = running().find(({ identity }) => identity.kind === 'container')
    runtime.exit(container?.id ?? '', 1)
    await clock.advance(100)
  }
  const restarts = () => world.status('web')?.containerStatuses?.[0]?.restartCount
  await crash()
  t.equal(restarts(), 1, 'the first time at once')
  await crash()
  t.match(world.status('web')?.containerStatuses?.[0], {
    restartCount: 1,
    state: {
      waiting: {
        reason: 'CrashLoopBackOff',
        message: 'back-off 10s restarting failed container=main pod=web_default(uid-of-web)',
      },
    },
    lastState: { terminated: { exitCode: 1 } },
  })
  await clock.advance(9_800)
  t.equal(restarts(), 1)
  await clock.advance(200)
  t.equal(restarts(), 2)
  t.equal(
    runtime.containers.filter(({ identity }) => identity.kind === 'container').length,
    2,
    'the one before is kept',
  )
})

test('a container starts again with the files that it has when their ConfigMap and Secret are gone', async (t) => {
  const { clock, runtime, running, world } = nodeInMemory(t)
  const volumes = [
    { name: 'c', configMap: { name: 'settings', items: [{ key: 'a', path: 'a' }] } },
    { name: 's', secret: { secretName: 'keys' } },
  ]
  const volumeMounts = [
    { name: 'c', mountPath: '/c' },
    { name: 's', mountPath: '/s/a', subPath: 'a' },
  ]
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', volumeMounts }
  const podOf = (name: string) => {
    const pod = podRunning(name, listening, { containers: [container] })
    return { ...pod, spec: { ...pod.spec, volumes } }
  }
  const web = podOf('web')
  const settings = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace: 'default' },
  } as const
  const keys = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keys', namespace: 'default' } } as const
  const data = { a: 'b25l' }
  world.publishDesired({ pods: [web], configMaps: [{ ...settings, data }], secrets: [{ ...keys, data }] })
  await clock.advance(1_000)
  const main = () => running().find(({ identity }) => identity.kind === 'container')
  const restarted = async () => {
    runtime.exit(main()?.id ?? '', 1)
    await clock.advance(400_000)
    return world.status('web')?.containerStatuses?.[0]
  }
  world.publishDesired({ pods: [web], configMaps: [{ ...settings, data: { other: 'two' } }], secrets: [] })
  await clock.advance(1_000)
  t.match(await restarted(), { restartCount: 1, state: { running: {} } }, 'the key and the Secret are gone')
  world.publishDesired({ pods: [web], configMaps: [], secrets: [] })
  await clock.advance(1_000)
  t.match(await restarted(), { restartCount: 2, state: { running: {} } }, 'both are gone')

  const later = podOf('later')
  world.publishDesired({ pods: [web, later], configMaps: [], secrets: [] })
  await clock.advance(10_000)
  t.match(world.status('later')?.containerStatuses?.[0], {
    state: { waiting: { message: /configmap "settings" not found/ } },
  })
})

test('a container that is added to a running pod is started once, and never again', async (t) => {
  const { clock, runtime, world, running } = nodeInMemory(t)
  const web = podRunning('web')
  const withDebuggers = (...ephemeralContainers: NonNullable<typeof web.spec.ephemeralContainers>) =>
    world.want({ ...web, spec: { ...web.spec, ephemeralContainers } })
  const look = { name: 'look', image, command: listening, targetContainerName: 'main' }
  withDebuggers()
  await clock.advance(1_000)
  withDebuggers(look, { ...look, name: 'lost', targetContainerName: 'absent' })
  await clock.advance(1_000)
  const [main, added] = ['main', 'look'].map((name) =>
    running().find(({ identity }) => identity.containerName === name),
  )
  t.equal(runtime.optionsOf(added?.id ?? '')?.processesOf, main?.id)
  t.match(world.status('web')?.ephemeralContainerStatuses, [
    { name: 'look', state: { running: {} } },
    { name: 'lost', state: { waiting: { message: 'unable to find target container "absent": it does not run' } } },
  ])
  runtime.exit(added?.id ?? '', 1)
  await clock.advance(400_000)
  await runtime.removeContainer(added?.id ?? '')
  await clock.advance(120_000)
  t.same(
    running().map(({ identity }) => identity.containerName),
    ['', 'main'],
  )
  t.match(world.status('web'), { phase: 'Running', containerStatuses: [{ restartCount: 0 }] })
})

test('on a kernel without a memory cgroup a pod with a limit runs, with one Event', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  runtime.lacks('memoryLimit', 'swapLimit')
  const resources = { limits: { memory: '64Mi', cpu: '1' } }
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', 'exit 1'], resources }
  world.want(podRunning('web', listening, { containers: [container, { ...container, name: 'second' }] }))
  await clock.advance(60_000)
  t.equal(world.eventTexts().filter((line) => line.startsWith('MemoryLimitNotEnforced')).length, 1)
  const made = runtime.containers.filter(({ identity }) => identity.kind === 'container')
  t.match(runtime.optionsOf(made[0]?.id ?? '')?.limits, { memoryBytes: 0, nanoCPUs: 1e9 })
})

test('a termination message comes from its file, or from the log where the policy asks for it', async (t) => {
  const { clock, runtime, messages, world } = nodeInMemory(t)
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command: listening }
  const terminationMessagePolicy = 'FallbackToLogsOnError'
  const containers = [container, { ...container, name: 'log', terminationMessagePolicy }]
  world.want(aPod({ name: 'web', uid: 'uid-web', restartPolicy: 'Never', containers }))
  await clock.advance(1_000)
  messages.set('uid-web/main/0', 'no disk')
  const made = runtime.containers.filter(({ identity }) => identity.kind === 'container')
  t.match(runtime.optionsOf(made[0]?.id ?? '')?.mounts, [{ source: '/messages/uid-web/main/0' }])
  for (const { id } of made) runtime.logs.set(id, 'one\ntwo\n')
  for (const { id } of made) runtime.exit(id, 1)
  await clock.advance(1_000)
  t.match(world.status('web')?.containerStatuses, [
    { state: { terminated: { message: 'one\ntwo\n' } } },
    { state: { terminated: { message: 'no disk' } } },
  ])
  t.equal(runtime.calls.filter(({ method }) => method === 'logTail').length, 1, 'asked once')
})

test('the containers of a pod share a hosts file, with the address that the pod got', async (t) => {
  const { clock, world, etc } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(1_000)
  const { podIP } = world.status('web') ?? {}
  t.match(podIP, /./)
  t.ok(etc.get('uid-of-web/hosts')?.endsWith(`\n${podIP}\tweb\n`))
  t.equal(etc.get('uid-of-web/resolv.conf'), 'search lan\nnameserver 192.0.2.53\n')
})

test('a pod on the machine’s network has the lines of the machine’s hosts file', async (t) => {
  const { clock, world, etc } = nodeInMemory(t)
  world.want(aPod({ name: 'web', uid: 'uid-web', spec: { hostNetwork: true } }))
  await clock.advance(1_000)
  t.equal(etc.get('uid-web/hosts'), '# Kubernetes-managed hosts file (host network).\n192.0.2.11\tpi\n')
})
