import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import dbus from 'dbus-next'
import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { noDBus, privateBus, serve } from '../../testing/private-bus.ts'
import { machineSensors } from '../kernel/machine-sensors.ts'
import { timeService } from './time-service.ts'

test('with chrony the kernel’s flag counts, which is polled until it is true', { skip: noDBus }, async (t) => {
  const bus = await privateBus()
  t.teardown(() => bus.remove())
  const { root } = bus
  const clock = fakeClock()
  let [isSet, asked] = [false, 0]
  const timedated = await serve(bus, ['org.freedesktop.timedate1'], ({ member, body }) => {
    if (member !== 'Get' || (body as string[])[1] !== 'NTPSynchronized')
      return 'org.freedesktop.DBus.Error.UnknownMethod'
    asked++
    return { signature: 'v', body: [new dbus.Variant('b', isSet)] }
  })
  t.teardown(() => timedated.leave())
  const service = timeService({ root, clock })
  const sensors = machineSensors({ root, otherTimeService: service })
  const stop = new AbortController()
  const running = service.run(stop.signal)
  await clock.settle()
  t.equal(asked, 0, 'nothing but systemd-timesyncd may set this clock: no call is made')

  await mkdir(join(root, 'run/chrony'))
  const untilSo = async (is: () => boolean) => {
    for (; !is(); await delay(5)) await clock.advance(300_000)
  }
  await untilSo(() => asked > 0)
  t.equal(sensors.time().synchronized, undefined)
  isSet = true
  await untilSo(() => sensors.time().synchronized === true)
  const before = asked
  await clock.advance(24 * 3600_000)
  t.equal(asked, before, 'and then no longer')
  stop.abort()
  await running
})
