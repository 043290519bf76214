import { test } from 'tap'
import { image, listening, mirrorOf, nodeInMemory, podFromFile, podRunning } from '../testing/node-in-memory.ts'

test('a static pod runs without a controller, and is reported once it has a mirror', async (t) => {
  const { clock, world, running } = nodeInMemory(t)
  world.manager.staticPods([podFromFile('a')])
  await clock.advance(1_000)
  t.equal(running().length, 2)
  t.equal(world.status('web-pi-01'), undefined)
  t.same(world.eventTexts(), [], 'an Event of an unknown pod would be rejected')
  world.want(mirrorOf('a', 'mirror-1'))
  await clock.advance(1_000)
  t.equal(running().length, 2, 'the mirror itself runs nothing')
  t.match(world.messages('mirror-1'), { uid: 'mirror-1', name: 'web-pi-01', status: { phase: 'Running' } })
  t.match(world.eventTexts(), [/^Pulled/, /^Created/, /^Started/])
  world.want(mirrorOf('a', 'mirror-2'))
  await clock.advance(1_000)
  t.match(world.messages('mirror-2'), { status: { phase: 'Running' } })
  t.same(world.gone, ['mirror-1'], 'nothing stays behind of a mirror that is gone')
  world.want()
  await clock.advance(60_000)
  t.equal(running().length, 2, 'without a mirror it runs on')
})

test('a changed static pod waits until the last one of its name has ended', async (t) => {
  const { clock, runtime, world, running } = nodeInMemory(t)
  runtime.images.add('busybox:2')
  world.want()
  const deaf = podFromFile('a')
  world.manager.staticPods([
    { ...deaf, spec: { ...deaf.spec, containers: [{ name: 'main', image, command: ['sleep', '9'] }] } },
  ])
  await clock.advance(1_000)
  world.manager.staticPods([podFromFile('b', 'busybox:2')])
  await clock.advance(10_000)
  t.same([...new Set(running().map(({ identity }) => identity.podUID))], ['a'])
  await clock.advance(25_000)
  t.same([...new Set(running().map(({ identity }) => identity.podUID))], ['b'])
  t.ok(world.manager.isHere('b'))
  world.manager.staticPods([])
  await clock.advance(5_000)
  t.same(running(), [])
  t.notOk(world.manager.isHere('b'))
})

test('while the files are not known, nothing of a static pod is removed; the next agent adopts it', async (t) => {
  const { clock, world, start, running } = nodeInMemory(t)
  world.want()
  world.manager.staticPods([podFromFile('a')])
  await clock.advance(1_000)
  const before = running().map(({ id }) => id)
  await world.stop()
  const next = start()
  next.manager.staticPods(undefined)
  await clock.advance(120_000)
  next.manager.staticPods([podFromFile('a')])
  await clock.advance(60_000)
  t.same(
    running().map(({ id }) => id),
    before,
  )
})

test('a file that changed while no agent and no controller was there replaces its pod', async (t) => {
  const { clock, world, start, running } = nodeInMemory(t)
  world.manager.staticPods([podFromFile('a')])
  await clock.advance(1_000)
  await world.stop()
  const next = start()
  next.manager.staticPods([podFromFile('b')])
  await clock.advance(10_000)
  t.same([...new Set(running().map(({ identity }) => identity.podUID))], ['b'])
})

test('a pod of the API does not become static by its annotation', async (t) => {
  const { clock, world } = nodeInMemory(t)
  world.want(podRunning('sly', listening, { annotations: { 'kubernetes.io/config.source': 'file' } }))
  await clock.advance(1_000)
  t.match(world.manager.pods()[0]?.metadata.annotations, { 'kubernetes.io/config.source': 'api' })
})
