import { test } from 'tap'
import { localTimeZone, timeZone, utc } from './time-zone.ts'

const may = Date.parse('2026-05-06T07:08:09Z')

test('zones are known by their names in the IANA database, by case', async (t) => {
  for (const name of [
    'Europe/Berlin',
    'UTC',
    'Asia/Kolkata',
    'America/Argentina/Ushuaia',
    'Etc/GMT+5',
    'America/Port_of_Spain',
  ]) {
    t.equal(timeZone(name)?.name, name)
  }
  for (const name of ['europe/berlin', 'Mars/Base', '+01:00', '', 'Europe/../UTC', 'Local'])
    t.equal(timeZone(name), undefined)
  t.ok(localTimeZone().name)
})

test('an instant has the fields that clocks of the zone show', async (t) => {
  t.match(utc.fieldsAt(may), { year: 2026, month: 5, day: 6, hour: 7, minute: 8, second: 9, weekday: 3 })
  t.match(timeZone('Asia/Kathmandu')?.fieldsAt(may), { hour: 12, minute: 53 })
  t.match(timeZone('Pacific/Honolulu')?.fieldsAt(may), { day: 5, hour: 21, weekday: 2 })
})

test('fields give an instant, also those out of their range', async (t) => {
  const berlin = timeZone('Europe/Berlin')
  t.equal(berlin?.instantOf(2026, 5, 6, 9, 8, 9), may)
  t.equal(berlin?.instantOf(2026, 4, 36, 9, 8, 9), may)
  t.equal(berlin?.instantOf(2025, 17, 6, 9, 8, 9), may)
})

test('an instant is written with the offset of the zone', async (t) => {
  t.equal(utc.format(may + 500), '2026-05-06T07:08:09Z')
  t.equal(timeZone('Europe/Berlin')?.format(may), '2026-05-06T09:08:09+02:00')
  t.equal(timeZone('America/St_Johns')?.format(may), '2026-05-06T04:38:09-02:30')
  t.equal(timeZone('Europe/London')?.format(Date.parse('2026-01-01T00:00:00Z')), '2026-01-01T00:00:00Z')
})
