import { test } from 'tap'
import type { FleetUpdate } from '../../../api/dashboard/dashboard-messages.ts'
import { type FakeClock, fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { StreamRefusedError } from './fleet-updates.ts'
import type { Terminal, TerminalListener } from './terminal.ts'
import { topAsLines, topInTerminal } from './top.ts'

const rights = { nodes: true, usage: true, requests: true, pods: true, events: true, workloads: true }
const machine = (name: string, state: 'ready' | 'lost' = 'ready'): FleetUpdate => ({
  nodes: { put: [{ name, state, pods: 0 }] },
})

/** A controller whose connections are steps of the test: updates, and then an error, an end, or nothing more. */
function connections(
  ...each: readonly { readonly sends: readonly FleetUpdate[]; readonly ends: 'stay' | 'end' | Error }[]
) {
  let opened = 0
  let push: (update: FleetUpdate) => void = () => undefined
  async function* updates(signal: AbortSignal): AsyncIterable<FleetUpdate> {
    const { sends, ends } = each[opened++] ?? { sends: [], ends: new Error('connect ECONNREFUSED') }
    yield* sends
    if (ends instanceof Error) throw ends
    while (ends === 'stay') {
      const update = await new Promise<FleetUpdate | undefined>((resolve) => {
        push = resolve
        signal.addEventListener('abort', () => resolve(undefined), { once: true })
      })
      if (update === undefined) return
      yield update
    }
  }
  return { updates, push: (update: FleetUpdate) => push(update), opened: () => opened }
}

function aTerminal(
  clock: FakeClock,
  { updates }: Pick<ReturnType<typeof connections>, 'updates'>,
  signal = new AbortController().signal,
) {
  let shown = ''
  let isOpen = false
  let listener: TerminalListener | undefined
  const open = (given: TerminalListener): Terminal => {
    listener = given
    isOpen = true
    return {
      size: () => ({ columns: 120, rows: 20 }),
      draw(lines) {
        shown = lines
          .map((line) =>
            line
              .map(({ text }) => text)
              .join('')
              .trimEnd(),
          )
          .join('\n')
      },
      close() {
        isOpen = false
      },
    }
  }
  const running = topInTerminal({ updates, server: 'https://hub:6443', clock }, open, signal)
  running.catch(() => undefined)
  return { running, shown: () => shown, isOpen: () => isOpen, listener: () => listener }
}

test('the terminal shows what comes, and keeps it while the connection is lost', async (t) => {
  const clock = fakeClock()
  const all = connections(
    { sends: [{ reset: rights }, machine('pi-1'), { complete: true }], ends: new Error('read ECONNRESET') },
    { sends: [{ reset: rights }], ends: 'stay' },
  )
  const { running, shown, isOpen, listener } = aTerminal(clock, all)
  await clock.advance(100)
  t.match(shown(), /^ NOT CONNECTED, trying again: read ECONNRESET/)
  t.match(shown(), '   pi-1 Ready')
  await clock.advance(1_000)
  t.match(shown(), 'live')
  t.match(shown(), 'pi-1', 'the old cards stay until all new ones are there')
  all.push(machine('pi-2', 'lost'))
  await clock.settle()
  all.push({ complete: true })
  await clock.advance(100)
  t.match(shown(), '!! pi-2 No contact')
  t.notMatch(shown(), 'pi-1')
  listener()?.onKey({ key: 'text', text: 'q' })
  await running
  t.notOk(isOpen(), 'the terminal is restored')
})

test('attempts to connect again become rarer, and a refusal ends them', async (t) => {
  const clock = fakeClock()
  const all = connections(
    { sends: [{ complete: true }], ends: 'end' },
    { sends: [], ends: new Error('connect ECONNREFUSED') },
    { sends: [], ends: new StreamRefusedError('over the limit (status 429)', false) },
    { sends: [], ends: new StreamRefusedError('the certificate was revoked (status 401)', true) },
  )
  const { running, isOpen } = aTerminal(clock, all)
  await clock.advance(1_000)
  t.equal(all.opened(), 2)
  await clock.advance(1_999)
  t.equal(all.opened(), 2)
  await clock.advance(4_002)
  t.equal(all.opened(), 4)
  await t.rejects(running, { message: 'Cannot read the fleet from https://hub:6443', cause: { message: /revoked/ } })
  t.notOk(isOpen(), 'the terminal is restored')
})

test('a first connection that fails ends the command with the reason', async (t) => {
  const { running, isOpen } = aTerminal(fakeClock(), connections())
  await t.rejects(running, { cause: { message: 'connect ECONNREFUSED' } })
  t.notOk(isOpen())
})

test('a signal and a terminal that is gone end it without an error', async (t) => {
  for (const how of ['signal', 'terminal']) {
    const clock = fakeClock()
    const stop = new AbortController()
    const { running, listener, isOpen } = aTerminal(
      clock,
      connections({ sends: [machine('pi-1')], ends: 'stay' }),
      stop.signal,
    )
    await clock.advance(100)
    if (how === 'signal') stop.abort()
    else listener()?.onEnd()
    await running
    t.notOk(isOpen())
  }
})

test('in a pipe the fleet is printed once, with the usage of machines that are ready', async (t) => {
  const clock = fakeClock()
  const printed: string[] = []
  const all = connections({
    sends: [{ reset: rights }, machine('pi-1'), machine('pi-2', 'lost'), { complete: true }],
    ends: 'stay',
  })
  const running = topAsLines(
    { updates: all.updates, server: '', clock },
    { print: (text) => void printed.push(text), watches: false },
    new AbortController().signal,
  )
  await clock.advance(5_000)
  t.same(printed, [])
  all.push({ usage: { 'pi-1': [50, null, null, null, null, null] } })
  await running
  t.match(printed.join(''), /^machine\tbad\tpi-2\t.*\nmachine\tgood\tpi-1\t.*cpu=50%.*\n$/)
})

test('a machine that reports no usage delays the lines by 15 s at most', async (t) => {
  const clock = fakeClock()
  const printed: string[] = []
  const all = connections({ sends: [{ reset: rights }, machine('pi-1'), { complete: true }], ends: 'stay' })
  const running = topAsLines(
    { updates: all.updates, server: '', clock },
    { print: (text) => void printed.push(text), watches: false },
    new AbortController().signal,
  )
  await clock.advance(14_000)
  t.equal(printed.length, 0)
  await clock.advance(2_000)
  await running
  t.match(printed.join(''), 'cpu=-')
})

test('watched lines are printed again only when they change', async (t) => {
  const clock = fakeClock()
  const printed: string[] = []
  const stop = new AbortController()
  const all = connections({
    sends: [{ reset: { ...rights, usage: false } }, machine('pi-1'), machine('pi-2'), { complete: true }],
    ends: 'stay',
  })
  const running = topAsLines(
    { updates: all.updates, server: '', clock },
    { print: (text) => void printed.push(text), watches: true },
    stop.signal,
  )
  await clock.advance(5_000)
  t.match(printed, [/pi-1.*\n.*pi-2/])
  all.push(machine('pi-2', 'lost'))
  await clock.advance(60_000)
  t.match(printed.slice(1), [/^machine\tbad\tpi-2\tNo contact.*\n$/])
  stop.abort()
  await running
})
