import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { replacedLinks } from './replaced-links.ts'

const warning = 'The connection is closed again and again: another machine probably uses the certificate of this node'

test('connections that one controller closes again and again are explained, once an hour', async (t) => {
  const clock = fakeClock()
  const log = quietLog(t, warning)
  const links = replacedLinks({ clock, log })
  for (let count = 0; count < 20; count++) {
    links.lost({ lastedMs: 5_000, epoch: 'one' })
    t.equal(log.messages('warn').length, count < 3 ? 0 : 1)
    await clock.advance(10_000)
  }
  t.match(log.lines.find(({ message }) => message === warning)?.facts, { closed: 4, remedy: /DuplicateIdentity/ })
})

test('a controller that restarts, a link that lasts and one that blinks now and then are not taken for it', async (t) => {
  const clock = fakeClock()
  const log = quietLog(t)
  const links = replacedLinks({ clock, log })
  for (let count = 0; count < 20; count++) {
    links.lost({ lastedMs: 5_000, epoch: `start-${count}` })
    links.lost({ lastedMs: 120_000, epoch: 'one' })
    links.lost({ lastedMs: 5_000, epoch: undefined })
    await clock.advance(10_000)
  }
  for (let count = 0; count < 10; count++) links.lost({ lastedMs: 5_000, epoch: undefined })
  for (let count = 0; count < 10; count++) {
    links.lost({ lastedMs: 5_000, epoch: 'one' })
    await clock.advance(100_000)
  }
  t.same(log.messages('warn'), [])
})

test('four links of a minute or less, within five minutes, are the sign', async (t) => {
  const after = async (lastedMs: number, waitMs: number) => {
    const clock = fakeClock()
    const log = quietLog(t, warning)
    const links = replacedLinks({ clock, log })
    await clock.advance(1_000_000)
    for (let count = 0; count < 4; count++) {
      links.lost({ lastedMs, epoch: 'one' })
      await clock.advance(waitMs)
    }
    return log.lines.map(({ facts }) => [facts['closed'], facts['withinSeconds']])
  }
  t.same(await after(60_000, 20_000), [[4, 60]])
  t.same(await after(60_001, 20_000), [])
  t.same(await after(1, 99_999), [[4, 300]])
  t.same(await after(1, 100_000), [], 'the first is five minutes ago')
})

test('the same controller an hour later is logged again', async (t) => {
  const clock = fakeClock()
  const log = quietLog(t, warning)
  const links = replacedLinks({ clock, log })
  await clock.advance(1_000_000)
  for (let count = 0; count < 4; count++) links.lost({ lastedMs: 1, epoch: 'one' })
  await clock.advance(3_599_999)
  for (let count = 0; count < 4; count++) links.lost({ lastedMs: 1, epoch: 'one' })
  t.equal(log.lines.length, 1)
  await clock.advance(1)
  links.lost({ lastedMs: 1, epoch: 'one' })
  t.equal(log.lines.length, 2)
  t.same(
    log.lines.map(({ facts }) => facts['closed']),
    [4, 4],
  )
})
