import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Test, test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import type { Log } from '../../daemon/log.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { bootFile } from '../adapters/disk/boot-file.ts'
import { recordStart } from '../adapters/disk/start-record.ts'
import { image, listening, nodeInMemory, podRunning } from '../testing/node-in-memory.ts'
import { until } from '../testing/until.ts'
import { openBootRecord } from './boot-record.ts'

const lasting = 600_000
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** The agent on a machine that has booted, with a clock of its own. */
async function booted(directory: string, bootID: string, log: Log) {
  const record = await openBootRecord(bootFile(directory), bootID)
  const clock = fakeClock()
  return { record, clock, gate: record.startGate({ clock, uptimeMs: clock.monotonicMs, log }) }
}

const pod = (uid: string, annotations: { [name: string]: string } = {}) => aPod({ name: uid, uid, annotations })

test('a new boot is noticed once, a first start and a restart are not new boots', async (t) => {
  const directory = testFolder(t)
  const rebooted = async (bootID: string) => (await openBootRecord(bootFile(directory), bootID)).rebooted
  t.equal(await rebooted('boot-1'), false, 'we never ran here before')
  t.equal(await rebooted('boot-1'), false, 'only the agent was started again')
  t.equal(await rebooted('boot-2'), true)
  t.equal(await rebooted('boot-2'), false)
})

test('boots that did not last are counted, back to the last one that did', async (t) => {
  const directory = testFolder(t)
  writeFileSync(join(directory, 'boot-id'), 'boot-0\n')
  const boot = (name: string) => openBootRecord(bootFile(directory), name)
  await (await boot('boot-1')).update(lasting)
  t.equal((await boot('boot-1')).shortBoots, 1, 'whether an earlier one lasted is not recorded')
  t.equal((await boot('boot-2')).shortBoots, 0)
  t.equal((await boot('boot-3')).shortBoots, 1)
  for (const name of ['boot-4', 'boot-5']) await boot(name)
  const last = await boot('boot-5')
  t.equal(last.shortBoots, 3)
  await last.update(lasting)
  await last.update(lasting)
  t.equal((await boot('boot-6')).shortBoots, 0)
  for (let more = 7; more < 30; more++) await boot(`boot-${more}`)
  t.ok(readFileSync(join(directory, 'boot-id'), 'utf8').length < 200, 'the file stays small')
})

/** Boots one after the other, each with a machine that goes down after `diesAfterMs`, with all pods that may start. */
function machineThatDies(t: Test, pods: readonly string[]) {
  const directory = testFolder(t)
  const log = quietLog(t)
  let boots = 0
  const boot = async (diesAfterMs: (started: ReadonlyMap<string, number>) => number, mostMs = 240_000) => {
    const { record, clock, gate } = await booted(directory, `boot-${++boots}`, log)
    const started = new Map<string, number>()
    while (clock.monotonicMs() < Math.min(mostMs, diesAfterMs(started))) {
      for (const uid of pods.filter((one) => !started.has(one) && gate.hold(pod(one)) === undefined)) {
        await gate.starting(pod(uid))
        started.set(uid, clock.monotonicMs())
      }
      if (clock.monotonicMs() % 5_000 === 0) await record.update(clock.monotonicMs())
      await clock.advance(1_000)
    }
    return { record, clock, gate, started }
  }
  return { boot, log, path: join(directory, 'boot-id') }
}

const never = Number.POSITIVE_INFINITY

test('a pod that takes the machine down is found among others, held back, and let go when it does no harm', async (t) => {
  const { boot, log, path } = machineThatDies(t, ['a', 'bad', 'c'])
  const oneBoot = () => boot((started) => (started.get('bad') ?? never) + 5_000)
  const startedIn = async () => [...(await oneBoot()).started].map(([uid, ms]) => `${uid} ${ms / 1000}`).join(', ')
  t.equal(await startedIn(), 'a 0, bad 0, c 0')
  t.equal(readFileSync(path, 'utf8'), 'boot-1\n', 'nothing is written for pods while all is well')
  t.equal(await startedIn(), 'a 0, bad 0, c 0')
  t.equal(await startedIn(), 'a 0, bad 0', 'c was last, and waits: the machine goes down without it')
  for (const _ of [1, 2]) t.equal(await startedIn(), 'a 0, c 0, bad 10')
  for (const _ of [1, 2]) t.equal(await startedIn(), 'a 0, c 0, bad 30', 'the machine lives without it for longer')
  const { record, clock, gate, started } = await oneBoot()
  t.same([...started.keys()], ['a', 'c'], 'the others run')
  t.match(gate.hold(pod('bad')), {
    reason: 'BootLoop',
    isNew: false,
    message:
      /held back .* up for an hour \(\d\d:\d\d UTC\)\. To start it now: 'kubectl annotate pod -n default bad bramble\.dev\/boot-loop-hold=false'/,
  })
  t.match(log.lines.at(-1), { level: 'warn', facts: { pod: 'default/bad' } })
  await record.update(lasting)
  t.match(readFileSync(path, 'utf8'), /^boot-8 lasted\n[\s\S]*held bad=default\/bad\n$/)
  t.equal(gate.hold(pod('bad again')), undefined)

  await clock.advance(3600_000)
  t.equal(gate.hold(pod('bad')), undefined)
  await gate.starting(pod('bad'))
  await record.update(lasting)
  t.match(readFileSync(path, 'utf8'), /held bad/, 'as long as it may still do harm')
  await clock.advance(600_000)
  await record.update(lasting)
  t.notMatch(readFileSync(path, 'utf8'), /held/)
})

test('plugs that are pulled at the same moment of each boot hold no pod back', async (t) => {
  for (const seconds of [3, 12, 25, 40, 70, 110]) {
    const { boot, path } = machineThatDies(t, ['first', 'only'])
    for (let pull = 0; pull < 12; pull++) {
      await boot(() => seconds * 1000)
      t.notMatch(readFileSync(path, 'utf8'), /held/, `after ${seconds} s`)
    }
  }
})

test('plugs that are pulled at any moment hold no pod back', async (t) => {
  let seed = 1
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
  for (let round = 0; round < 30; round++) {
    const { boot, path } = machineThatDies(t, ['first', 'only'])
    const within = 30_000 + 200_000 * random()
    for (let pull = 0; pull < 30; pull++) await boot(() => Math.ceil((within * random()) / 1000) * 1000)
    t.notMatch(readFileSync(path, 'utf8'), /held/, `within ${within} ms`)
  }
})

test('shutdowns blame no pod', async (t) => {
  const { boot, path } = machineThatDies(t, ['only'])
  for (let turn = 0; turn < 12; turn++) await (await boot(() => 20_000)).record.stop()
  t.notMatch(readFileSync(path, 'utf8'), /held|trial/)
})

test('a pod that is held back is released by its annotation, and removed from the record when it is deleted', async (t) => {
  const directory = testFolder(t, { 'boot-id': 'boot-1 lasted\nheld a=default/a b\n' })
  const path = join(directory, 'boot-id')
  const { gate, log } = { ...(await booted(directory, 'boot-2', quietLog(t))), log: quietLog(t) }
  t.same(log.lines, [], 'of pods that may be deleted nothing is logged')
  t.ok(gate.hold(pod('a')))
  t.ok(gate.hold(pod('b')), 'from a record of an earlier agent')
  t.equal(gate.hold(pod('a', { 'bramble.dev/boot-loop-hold': 'false' })), undefined)
  await gate.starting(pod('a'))
  await until('the record is written', () => /^held b=default\/b$/m.test(readFileSync(path, 'utf8')))
  gate.wanted(new Set(['b', 'c']))
  t.ok(gate.hold(pod('b')))
  gate.wanted(new Set(['c']))
  t.equal(gate.hold(pod('b')), undefined)
  await until('the record is written', () => !/held/.test(readFileSync(path, 'utf8')))
})

test('a pod with the annotation is not a suspect', async (t) => {
  const directory = testFolder(t, { 'boot-id': 'boot-2 last=a\nboot-1\n' })
  const { gate } = await booted(directory, 'boot-3', quietLog(t))
  const exempt = pod('a', { 'bramble.dev/boot-loop-hold': 'false' })
  t.equal(gate.hold(exempt), undefined)
  await gate.starting(exempt)
  t.match(readFileSync(join(directory, 'boot-id'), 'utf8'), /^boot-3 trial=a\n/)
})

test('cuts of power in every boot, but minutes after the pods were started, blame no pod', async (t) => {
  const directory = testFolder(t)
  const log = quietLog(t)
  for (let boot = 0; boot < 8; boot++) {
    const { record, clock, gate } = await booted(directory, `boot-${boot}`, log)
    for (let second = 0; second < 180; second += 10) {
      if (gate.hold(pod('only')) === undefined) await gate.starting(pod('only'))
      await clock.advance(10_000)
      await record.update(second * 1_000)
    }
  }
  t.notMatch(readFileSync(join(directory, 'boot-id'), 'utf8'), /held/)
})

test('of pods that start at once the last one is on record, and the file is whole', async (t) => {
  const directory = testFolder(t)
  writeFileSync(join(directory, 'boot-id'), 'boot-0\n')
  const { gate } = await booted(directory, 'boot-1', quietLog(t))
  await Promise.all(
    ['a-pod-with-a-long-name', 'b', 'a-pod-with-another-name', 'd'].map((uid) => gate.starting(pod(uid))),
  )
  t.equal(readFileSync(join(directory, 'boot-id'), 'utf8'), 'boot-1 last=d\nboot-0\n')
})

test('a suspect whose registry does not answer runs within the half minute all the same', async (t) => {
  const { clock, runtime, log, start, world } = nodeInMemory(t)
  const always = [{ name: 'main', image, imagePullPolicy: 'Always', command: listening }]
  world.want(podRunning('web', listening, { containers: always }))
  runtime.registry.add(image)
  await clock.advance(1_000)
  t.equal(world.status('web')?.phase, 'Running')
  await world.stop()
  runtime.powerCut()
  t.teardown(runtime.holdPulls('silent'))
  const directory = testFolder(t, { 'boot-id': 'boot-2 last=uid-of-web\nboot-1\n' })
  const next = start({
    gate: (await openBootRecord(bootFile(directory), 'boot-3')).startGate({ clock, uptimeMs: clock.monotonicMs, log }),
  })
  await clock.advance(9_000)
  t.match(next.eventTexts(), [/^BootLoop: /])
  // What is left of the 30 s is for Docker, whose calls take no time here.
  for (let second = 9; second < 21; second++) await clock.advance(1_000)
  t.match(next.status('web'), { phase: 'Running', containerStatuses: [{ restartCount: 1 }] })
})

test('an agent that is started again in the same boot goes on with its record', async (t) => {
  const directory = testFolder(t)
  writeFileSync(join(directory, 'boot-id'), 'boot-2 last=a some=later-word\n\0\0\nboot-1\n')
  const first = await booted(directory, 'boot-3', quietLog(t))
  t.match(first.gate.hold(pod('a')), { isNew: true, message: /2 times in a row/ })
  await first.record.stop()
  t.match(readFileSync(join(directory, 'boot-id'), 'utf8'), /^boot-3 ended trial=a\n/)
  const second = await booted(directory, 'boot-3', quietLog(t))
  t.match(readFileSync(join(directory, 'boot-id'), 'utf8'), /^boot-3 trial=a\n/)
  t.ok(second.gate.hold(pod('a')))
})

test('a suspect that does no harm is let go, also where another agent of this boot started it', async (t) => {
  const directory = testFolder(t, { 'boot-id': 'boot-3 trial=a began\nboot-2 last=a\nboot-1\n' })
  const record = await openBootRecord(bootFile(directory), 'boot-3')
  const clock = fakeClock()
  const gate = record.startGate({ clock, uptimeMs: clock.monotonicMs, log: quietLog(t) })
  t.equal(gate.hold(pod('a')), undefined)
  await record.update(60_000)
  t.match(readFileSync(join(directory, 'boot-id'), 'utf8'), /^boot-3 trial=a began\n/)
  await clock.advance(120_000)
  await record.update(180_000)
  t.match(readFileSync(join(directory, 'boot-id'), 'utf8'), /^boot-3 trial=a\n/)
})

test('a read-only folder does not fail it', async (t) => {
  const record = await openBootRecord(bootFile('/nowhere/at/all'), 'boot-1')
  t.equal(record.rebooted, false)
  await record.update(lasting)
})

test('a start after boots that lasted leaves no record', async (t) => {
  const record = await openBootRecord(bootFile(testFolder(t)), 'boot-1')
  const gate = record.startGate({ clock: fakeClock(), uptimeMs: () => 0, log: quietLog(t) })
  const usedBytes = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const start = async (count: number) => {
    for (let index = 0; index < count; index++) await gate.starting(pod(`${index}-of-a-job-that-runs-each-minute`))
  }
  await start(1_000) // Compiled code and what the tests before left do not count.
  const before = usedBytes()
  await start(50_000)
  const leftBytes = usedBytes() - before
  t.ok(leftBytes < 3e6, `${leftBytes} bytes; the names alone would be 4 MB`)
})

test("the agent's starts are remembered until the machine is restarted, as far as they matter", async (t) => {
  const path = join(testFolder(t), 'bramble', 'id.starts')
  t.same(await recordStart(path, 1_000.4), [1_000])
  t.same(await recordStart(path, 2_000), [1_000, 2_000])
  for (let more = 0; more < 20; more++) await recordStart(path, 3_000)
  t.equal((await recordStart(path, 4_000))?.length, 10)
  t.equal(await recordStart('/proc/nowhere/starts', 1), undefined, 'where nothing can be written nothing is remembered')
})
