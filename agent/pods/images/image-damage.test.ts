import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { aContainer } from '../../testing/builders.ts'
import { listening, nodeInMemory, podRunning } from '../../testing/node-in-memory.ts'
import { damagedImages } from './damaged-images.ts'
import { damageMessage, endsAsDamaged } from './image-damage.ts'

const ended = aContainer({
  state: 'exited',
  exitCode: 1,
  startedAt: '2026-01-01T00:00:00Z',
  finishedAt: '2026-01-01T00:00:10Z',
})

test('a container that fails right after its start, or does not start, may have a damaged image', (t) => {
  t.equal(endsAsDamaged(ended), true)
  t.equal(endsAsDamaged({ ...ended, finishedAt: '2026-01-01T00:00:10.001Z' }), false, 'it ran')
  t.equal(endsAsDamaged({ ...ended, exitCode: 0 }), false)
  for (const exitCode of [130, 137, 143]) t.equal(endsAsDamaged({ ...ended, exitCode }), false, 'it was stopped')
  t.equal(endsAsDamaged({ ...ended, state: 'created', error: 'exec format error', startedAt: undefined }), true)
  t.equal(endsAsDamaged({ ...ended, state: 'created', exitCode: 0, finishedAt: undefined }), false)
  t.end()
})

test('the message names the image, the file and the way out', (t) => {
  t.equal(
    damageMessage('busy:1', 'the file "/bin/sh" has 0 of 9 bytes'),
    'the image busy:1 is damaged on this machine: the file "/bin/sh" has 0 of 9 bytes. Remove its containers and then the image ' +
      "('docker rm --force $(docker ps --all --quiet --filter ancestor=busy:1)', 'docker image rm --force busy:1'); " +
      'it is pulled again, or import it again if no registry has it',
  )
  t.end()
})

const empty = 'the file "/bin/busybox" has 0 of 9 bytes in its layer sha256:1'
const checks = ({ calls }: { readonly calls: readonly { readonly method: string }[] }) =>
  calls.filter(({ method }) => method === 'imageDamage').length

test('a container of a damaged image waits with the cause, and starts once the image is in order again', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  runtime.damagedImages.set('busybox:1.36', empty)
  world.want(podRunning('web', ['exit', '1']))
  await clock.advance(60_000)
  t.match(world.status('web')?.containerStatuses?.[0], {
    state: {
      waiting: { reason: 'ImageDamaged', message: `the image busybox:1.36 is damaged on this machine: ${empty}. ` },
    },
    lastState: { terminated: { exitCode: 1 } },
  })
  const events = world.eventTexts().filter((text) => text.startsWith('ImageDamaged: '))
  t.equal(events.length, 1)
  runtime.damagedImages.clear()
  const before = runtime.calls.filter(({ method }) => method === 'startContainer').length
  await clock.advance(180_000)
  t.ok(runtime.calls.filter(({ method }) => method === 'startContainer').length > before)
})

test('the engine cannot make a container of a damaged image', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  runtime.damagedImages.set('busybox:1.36', empty)
  runtime.failNext('createContainer', 'Failed', 'readlink /var/lib/docker/overlay2/l: invalid argument')
  world.want(podRunning('web'))
  await clock.advance(30_000)
  t.match(world.status('web')?.containerStatuses?.[0]?.state?.waiting, { reason: 'ImageDamaged' })
})

test('an image in order is checked once, however often its containers fail', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.want(podRunning('web', ['exit', '1']), podRunning('other', ['exit', '2']), podRunning('well', listening))
  await clock.advance(600_000)
  t.equal(checks(runtime), 1)
  t.match(world.status('web')?.containerStatuses?.[0]?.state?.waiting, { reason: 'CrashLoopBackOff' })
})

test('no image is checked while containers run', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  world.want(podRunning('web'))
  await clock.advance(600_000)
  t.equal(checks(runtime), 0)
})

test('a container of an image of which the engine lost a layer waits with the cause until it is there again', async (t) => {
  const { clock, runtime, world } = nodeInMemory(t)
  runtime.lostLayers.add('busybox:1.36')
  world.want(podRunning('web'))
  await clock.advance(60_000)
  const message = /^the image busybox:1.36 is damaged on this machine: a layer is lost, so Docker can neither/
  t.match(world.status('web')?.containerStatuses?.[0]?.state?.waiting, { reason: 'ImageDamaged', message })
  t.ok(world.eventTexts().some((text) => text.startsWith('ImageDamaged: the image busybox:1.36 is damaged')))
  runtime.registry.add('busybox:1.36')
  await clock.advance(360_000)
  t.equal(world.status('web')?.phase, 'Running')
})

test('the image that failed is checked, also when its name was given to another one meanwhile', async (t) => {
  const checked: string[] = []
  let release = () => {}
  const imageDamage = async (id: string) => {
    checked.push(id)
    await new Promise<void>((resolve) => {
      release = resolve
    })
    return id === 'sha256:old' ? empty : undefined
  }
  const images = damagedImages({ runtime: { imageDamage }, clock: fakeClock(), log: quietLog(t) })
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  images.suspect('web:1', 'sha256:old', () => undefined)
  images.suspect('web:1', 'sha256:new', () => undefined)
  for (let checks = 0; checks < 2; checks++) {
    await settled()
    release()
    await settled()
  }
  t.same(checked, ['sha256:old', 'sha256:new'])
  t.match(images.messageOf('web:1', 'sha256:old'), 'is damaged on this machine')
  t.equal(images.messageOf('web:1', 'sha256:new'), undefined)
})
