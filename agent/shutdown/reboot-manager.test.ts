import { type Test, test } from 'tap'
import type { RebootRequest } from '../../api/node/remote-reboot.ts'
import { cell } from '../../daemon/cell.ts'
import { rfc3339 } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import type { Departing } from './departure.ts'
import { rebootManager } from './reboot-manager.ts'

function aMachine(t: Test, { isEnabled = true, bootID = 'boot-1' } = {}) {
  const clock = fakeClock()
  const log = quietLog(t)
  const rebootRequest = cell<RebootRequest | undefined>(undefined)
  const goingDown = cell<Departing | undefined>(undefined)
  const events: NodeEvent[] = []
  const machine = { reboots: 0, blocked: undefined as string | undefined }
  const loop = rebootManager(
    {
      machine: {
        async reboot() {
          if (machine.blocked !== undefined) throw new Error(machine.blocked)
          machine.reboots++
        },
      },
      reads: { rebootRequest, goingDown },
      nowMs: clock.wallMs,
      uptimeMs: () => 3600_000,
      clock,
      log,
      recordEvent: (event) => void events.push(event),
    },
    { bootID, isEnabled },
  )
  const ending = new AbortController()
  const running = loop.run(ending.signal)
  t.teardown(async () => {
    ending.abort()
    await running
  })
  const request = async (requestedAt = rfc3339(clock.wallMs()), of = 'boot-1') => {
    rebootRequest.set({ requestedAt, bootID: of })
    await clock.settle()
  }
  return { clock, rebootRequest, goingDown, events, machine, request }
}

test('a request restarts the machine once, however often it is delivered', async (t) => {
  const { clock, machine, request, events } = aMachine(t)
  const requestedAt = rfc3339(clock.wallMs())
  for (let times = 0; times < 3; times++) {
    await request(requestedAt)
    await clock.advance(60_000)
  }
  t.equal(machine.reboots, 1)
  t.same(events, [])
})

test('the agent of the next boot does nothing with the request that it receives again', async (t) => {
  const { machine, request, events, clock } = aMachine(t, { bootID: 'boot-2' })
  await request()
  await clock.advance(600_000)
  t.equal(machine.reboots, 0)
  t.same(events, [])
})

test('a machine that does not allow it refuses each request once, with an Event', async (t) => {
  const { clock, machine, request, events } = aMachine(t, { isEnabled: false })
  const requestedAt = rfc3339(clock.wallMs())
  await request(requestedAt)
  await request(requestedAt)
  t.equal(machine.reboots, 0)
  t.match(events, [{ type: 'Warning', reason: 'RebootRefused', message: /enableRemoteReboot/ }])
  t.equal(events.length, 1)
  await clock.advance(1_000)
  await request()
  t.equal(events.length, 2, 'another request')
})

test('a request that is delivered too late is refused', async (t) => {
  const { clock, machine, request, events } = aMachine(t)
  await request(rfc3339(clock.wallMs() - 3 * 3600_000))
  t.equal(machine.reboots, 0, 'from before the boot')
  t.match(events.shift(), { reason: 'RebootRefused', message: /has started since/ })
  await request(rfc3339(clock.wallMs() - 360_000))
  t.equal(machine.reboots, 0)
  t.match(events, [{ reason: 'RebootRefused', message: /5 minutes old/ }])
})

test('a lock of another program delays the reboot until it ends, or the request expires', async (t) => {
  const { clock, machine, request, events } = aMachine(t)
  machine.blocked = 'Operation denied due to active block inhibitor'
  await request()
  await clock.advance(60_000)
  t.equal(machine.reboots, 0)
  t.match(events, [{ type: 'Warning', reason: 'RebootFailed', message: /active block inhibitor/ }])
  t.equal(events.length, 1)
  machine.blocked = undefined
  await clock.advance(10_000)
  t.equal(machine.reboots, 1)

  const other = aMachine(t)
  other.machine.blocked = 'Operation denied due to active block inhibitor'
  await other.request()
  await other.clock.advance(320_000)
  other.machine.blocked = undefined
  await other.clock.advance(60_000)
  t.equal(other.machine.reboots, 0)
})

test('while the machine shuts down for another reason, a request adds nothing', async (t) => {
  const { machine, request, goingDown } = aMachine(t)
  goingDown.set({ action: 'poweroff', untilMs: 60_000 })
  await request()
  t.equal(machine.reboots, 0)
})
