import { test } from 'tap'
import { parseSchedule, type Schedule } from './cron-schedule.ts'
import { type TimeZone, timeZone, utc } from './time-zone.ts'

function schedule(text: string, zone: TimeZone = utc): Schedule {
  const parsed = parseSchedule(text, zone)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.schedule
}
function zone(name: string): TimeZone {
  const found = timeZone(name)
  if (found === undefined) throw new Error(`no zone ${name}`)
  return found
}
/** The next moments after `from`, as clocks of the zone show them. */
function nexts(text: string, from: string, count = 1, where: TimeZone = utc): readonly string[] {
  const one = schedule(text, where)
  const moments: string[] = []
  let at: number | undefined = Date.parse(from)
  while (moments.length < count) {
    at = one.next(at)
    if (at === undefined) return moments
    moments.push(where.format(at))
  }
  return moments
}
const problem = (text: string) => {
  const parsed = parseSchedule(text, utc)
  return parsed.ok ? undefined : parsed.problem
}

test('the next moment is after the given one, on a full minute', async (t) => {
  t.same(nexts('*/15 * * * *', '2026-07-09T14:45:00Z'), ['2026-07-09T15:00:00Z'])
  t.same(nexts('*/15 * * * *', '2026-07-09T14:59:59Z'), ['2026-07-09T15:00:00Z'])
  t.same(nexts('20-35/15 * * * *', '2026-07-09T14:45:00Z', 2), ['2026-07-09T15:20:00Z', '2026-07-09T15:35:00Z'])
  t.same(nexts('20/15 * * * *', '2026-07-09T14:45:00Z', 3), [
    '2026-07-09T14:50:00Z',
    '2026-07-09T15:20:00Z',
    '2026-07-09T15:35:00Z',
  ])
})

test('hours, days, months and years are passed over', async (t) => {
  t.same(nexts('20-35/15 15/2 * * *', '2026-07-09T15:45:00Z'), ['2026-07-09T17:20:00Z'])
  t.same(nexts('0 0 29 2 *', '2026-01-01T00:00:00Z'), ['2028-02-29T00:00:00Z'])
  t.same(nexts('0 0 * feb Mon', '2026-07-09T23:35:00Z'), ['2027-02-01T00:00:00Z'])
  t.same(nexts('59 23 31 12 ?', '2026-12-31T23:59:00Z'), ['2027-12-31T23:59:00Z'])
})

test('a day of the month and a day of the week: either is enough, unless one of them is a star', async (t) => {
  t.same(nexts('0 0 1,15 * Sun', '2026-07-13T00:00:00Z', 2), ['2026-07-15T00:00:00Z', '2026-07-19T00:00:00Z'])
  t.same(nexts('0 0 * * Sun', '2026-07-13T00:00:00Z'), ['2026-07-19T00:00:00Z'])
  t.same(nexts('0 0 1,15 * *', '2026-07-13T00:00:00Z', 2), ['2026-07-15T00:00:00Z', '2026-08-01T00:00:00Z'])
  // A star with a step is a limit: the 31st of July is a Friday.
  t.same(nexts('0 0 */10 * Sun', '2026-07-30T00:00:00Z', 2), ['2026-07-31T00:00:00Z', '2026-08-01T00:00:00Z'])
})

test('descriptors stand for five fields', async (t) => {
  t.same(nexts('@hourly', '2026-07-09T14:45:00Z'), ['2026-07-09T15:00:00Z'])
  t.same(nexts('@daily', '2026-07-09T14:45:00Z'), nexts('@midnight', '2026-07-09T14:45:00Z'))
  t.same(nexts('@weekly', '2026-07-09T14:45:00Z'), ['2026-07-12T00:00:00Z'])
  t.same(nexts('@monthly', '2026-07-09T14:45:00Z'), ['2026-08-01T00:00:00Z'])
  t.same(nexts('@yearly', '2026-07-09T14:45:00Z'), nexts('@annually', '2026-07-09T14:45:00Z'))
})

test('@every counts from the given moment, in seconds', async (t) => {
  t.same(nexts('@every 1h30m', '2026-07-09T14:45:10Z', 2), ['2026-07-09T16:15:10Z', '2026-07-09T17:45:10Z'])
  t.same(nexts('@every 15.8s', '2026-07-09T14:45:00.500Z'), ['2026-07-09T14:45:15Z'])
  t.same(nexts('@every 1ms', '2026-07-09T14:45:00Z'), ['2026-07-09T14:45:01Z'])
})

test('a day that no month has never comes, and neither does a field of nothing', async (t) => {
  t.same(nexts('0 0 31 2 *', '2026-01-01T00:00:00Z'), [])
  t.same(nexts('* * 30 feb *', '2026-01-01T00:00:00Z'), [])
  t.same(nexts(', * * * *', '2026-01-01T00:00:00Z'), [])
  t.same(nexts('* * * * ,', '2026-01-01T00:00:00Z'), [])
  t.same(nexts('0 0 31 2 Sun', '2026-02-01T00:00:00Z'), ['2026-02-08T00:00:00Z'])
})

test('an hour that the clocks skip in spring is not made up for', async (t) => {
  const berlin = zone('Europe/Berlin')
  t.same(nexts('30 2 * * *', '2026-03-28T12:00:00Z', 2, berlin), [
    '2026-03-30T02:30:00+02:00',
    '2026-03-31T02:30:00+02:00',
  ])
  t.same(nexts('0 * * * *', '2026-03-29T00:30:00Z', 2, berlin), [
    '2026-03-29T03:00:00+02:00',
    '2026-03-29T04:00:00+02:00',
  ])
})

test('an hour that the clocks repeat in autumn comes twice for a schedule of that hour', async (t) => {
  const berlin = zone('Europe/Berlin')
  t.same(nexts('0 * * * *', '2026-10-24T23:30:00Z', 3, berlin), [
    '2026-10-25T02:00:00+02:00',
    '2026-10-25T02:00:00+01:00',
    '2026-10-25T03:00:00+01:00',
  ])
  t.same(nexts('30 2 * * *', '2026-10-24T12:00:00Z', 2, berlin), [
    '2026-10-25T02:30:00+02:00',
    '2026-10-25T02:30:00+01:00',
  ])
})

test('a day without a midnight is reached all the same', async (t) => {
  const paulo = zone('America/Sao_Paulo')
  t.same(nexts('0 9 4 11 *', '2018-10-17T05:00:00Z', 1, paulo), ['2018-11-04T09:00:00-02:00'])
})

test('a zone in the schedule is used instead of that of the machine', async (t) => {
  const parsed = parseSchedule('TZ=Asia/Kolkata 0 9 * * *', utc)
  t.equal(parsed.ok && parsed.schedule.next(Date.parse('2026-07-09T00:00:00Z')), Date.parse('2026-07-09T03:30:00Z'))
  const other = parseSchedule('CRON_TZ=UTC @daily', zone('Europe/Berlin'))
  t.equal(other.ok && other.schedule.next(Date.parse('2026-07-09T00:00:00Z')), Date.parse('2026-07-10T00:00:00Z'))
  t.equal(problem('TZ=Nowhere/Else 0 9 * * *'), 'provided bad location Nowhere/Else: unknown time zone Nowhere/Else')
})

test('an invalid schedule is refused with the words of robfig/cron', async (t) => {
  t.equal(problem(''), 'empty spec string')
  t.equal(problem('* * * *'), 'expected exactly 5 fields, found 4: [* * * *]')
  t.equal(problem('* * * * * *'), 'expected exactly 5 fields, found 6: [* * * * * *]')
  t.equal(problem('60 * * * *'), 'end of range (60) above maximum (59): 60')
  t.equal(problem('* * 0 * *'), 'beginning of range (0) below minimum (1): 0')
  t.equal(problem('5-2 * * * *'), 'beginning of range (5) beyond end of range (2): 5-2')
  t.equal(problem('*/0 * * * *'), 'step of range should be a positive number: */0')
  t.equal(problem('1-2-3 * * * *'), 'too many hyphens: 1-2-3')
  t.equal(problem('1/2/3 * * * *'), 'too many slashes: 1/2/3')
  t.equal(problem('a * * * *'), 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax')
  t.equal(
    problem('99999999999999999999 * * * *'),
    'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range',
  )
  t.equal(problem('@hurly'), 'unrecognized descriptor: @hurly')
  t.equal(problem('@every x'), 'failed to parse duration @every x: time: invalid duration "x"')
})

test('the last moment of a span is found, also over years of minutes', async (t) => {
  const last = (text: string, from: string, until: string) => {
    const found = schedule(text).last(Date.parse(from), Date.parse(until))
    return found === undefined ? undefined : utc.format(found)
  }
  t.equal(last('* * * 1 *', '2020-01-01T00:00:00Z', '2026-11-20T12:00:00Z'), '2026-01-31T23:59:00Z')
  t.equal(last('*/5 * * * *', '2026-11-20T12:00:00Z', '2026-11-20T12:14:59Z'), '2026-11-20T12:10:00Z')
  t.equal(last('*/5 * * * *', '2026-11-20T12:00:00Z', '2026-11-20T12:05:00Z'), '2026-11-20T12:05:00Z')
  t.equal(last('*/5 * * * *', '2026-11-20T12:00:00Z', '2026-11-20T12:04:59Z'), undefined)
  t.equal(last('@every 7m', '2026-11-20T12:00:00Z', '2026-11-20T12:30:00Z'), '2026-11-20T12:28:00Z')
  t.equal(last('@every 7m', '2026-11-20T12:00:00Z', '2026-11-20T12:06:59Z'), undefined)
})
