import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { linkOutages } from './link-outages.ts'

const url = 'mqtts://controller.example.com:8883'
const coded = (code: string) => Object.assign(new Error('failed'), { code })
const [refused, expired, unreachable] = [coded('ECONNREFUSED'), coded('CERT_HAS_EXPIRED'), coded('EHOSTUNREACH')]

function outages(t: Test) {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const links = linkOutages({ url: () => url, certificate: () => '', nowMs: clock.wallMs, clock, log })
  const lines = () => log.lines.map(({ level, message }) => `${level} ${message}`)
  return { clock, log, links, lines }
}
const [warned, repeated] = [
  'warn Cannot connect to the control plane, trying until it works',
  'debug Cannot connect to the control plane',
]
const connected = 'info Connected to the control plane'

test('a failure of one kind is logged once, with its remedy', async (t) => {
  const { links, log, lines } = outages(t)
  for (const error of [refused, unreachable, expired, expired, refused]) links.failed(error)
  t.same(lines(), [warned, repeated, warned, repeated, repeated])
  t.match(log.lines[0]?.facts, { url, error: refused, remedy: /is the controller running/ })
  t.match(log.lines[2]?.facts, { error: expired, remedy: /certificate has expired/ })
  t.match(log.lines[1]?.facts, { url, error: unreachable, remedy: undefined })
})

test('what is thrown and is not an error is logged as one', async (t) => {
  const { links, log } = outages(t)
  links.failed('hung up')
  t.match(log.lines[0]?.facts, { error: { message: 'hung up' } })
})

test('after a loss the failures of the network are expected, others are not', async (t) => {
  const { links, log, lines } = outages(t)
  links.lost(new Error('closed'), 90_499)
  t.match(log.lines[0], { level: 'warn', facts: { url, error: { message: 'closed' }, lastedSeconds: 90 } })
  links.failed(refused)
  links.failed(expired)
  t.same(lines().slice(1), [repeated, warned])
})

test('the end of an outage has its length and its tries, and the next one is logged again', async (t) => {
  const { clock, links, log, lines } = outages(t)
  links.over()
  t.same(log.lines[0]?.facts, { url }, 'there was none')
  links.failed(refused)
  await clock.advance(61_400)
  links.failed(refused)
  links.over()
  t.same(log.lines.at(-1)?.facts, { url, failedTries: 2, outSeconds: 61 })
  links.failed(refused)
  t.same(lines(), [connected, warned, repeated, connected, warned])
  links.over()
  links.lost(new Error('closed'), 0)
  links.over()
  t.same(log.lines.at(-1)?.facts, { url }, 'a loss without a failed try')
})
