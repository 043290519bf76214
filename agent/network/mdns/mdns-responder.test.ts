import { test } from 'tap'
import { addressData, type HostName, type MdnsMessage, type MdnsRecord } from './mdns-message.ts'
import { announcedNames, type MdnsNames, namesOfOthers, receiveMdns, stepNames, withWanted } from './mdns-responder.ts'

const pi = { name: 'pi-1.local', addresses: ['192.168.1.5'] }
const address = '192.168.1.5'
const dual = { ...pi, addresses: [address, '2001:db8::5', 'fd00:7::5'] }
const stranger = { isOwn: false, isLegacy: false }
const here = { isOwn: true, isLegacy: false }
const record = (address: string, more: Partial<MdnsRecord> = {}): MdnsRecord => ({
  name: pi.name,
  ttl: 120,
  ...addressData(address),
  ...more,
})
const query = (more: Partial<MdnsMessage> & { type?: number; wantsUnicast?: boolean } = {}): MdnsMessage => {
  const { type = 1, wantsUnicast = false, ...parts } = more
  const questions = [{ name: pi.name, type, wantsUnicast }]
  return { id: 0, isResponse: false, questions, answers: [], authorities: [], ...parts }
}
const response = (...answers: readonly MdnsRecord[]): MdnsMessage => ({
  id: 0,
  isResponse: true,
  questions: [],
  answers,
  authorities: [],
})

const fresh = (host: HostName = pi) => withWanted(new Map(), [host], 0, () => 0).names
/** Steps whenever one is due, until `untilMs`. */
const stepped = (names: MdnsNames, untilMs: number) => {
  const sent: string[] = []
  let [now, fromMs] = [names, 0]
  for (;;) {
    const { names: next, probes, announcements, dueMs } = stepNames(now, fromMs)
    now = next
    if (probes.length > 0) sent.push(`probe ${fromMs}`)
    if (announcements.length > 0) sent.push(`announcement ${fromMs}`)
    if (dueMs === undefined || dueMs > untilMs) return { names: now, sent }
    fromMs = dueMs
  }
}
const held = (host: HostName = pi) => stepped(fresh(host), 10_000).names
const phaseOf = (names: MdnsNames) => names.get(pi.name)?.state.phase

test('a name is probed three times within 750 ms and announced twice', async (t) => {
  const { names, sent } = stepped(fresh(), 10_000)
  t.same(sent, ['probe 0', 'probe 250', 'probe 500', 'announcement 750', 'announcement 1750'])
  t.equal(phaseOf(names), 'held')
  t.equal(stepNames(names, 1e9).dueMs, undefined, 'nothing is sent any more')
})

test('machines that start together do not probe at the same time', async (t) => {
  t.same(withWanted(new Map(), [pi], 100, () => 0.5).names.get(pi.name)?.state, {
    phase: 'probing',
    sent: 0,
    dueMs: 225,
  })
})

test('a name that is not verified yet is not answered', async (t) => {
  const { names } = stepped(fresh(), 500)
  t.same(receiveMdns(names, query(), stranger, 600).multicast, [])
  t.same(announcedNames(names), [])
})

test('a question is answered to all of the link, at most once a second', async (t) => {
  const first = receiveMdns(held(), query(), stranger, 5_000)
  t.match(first.multicast, [pi])
  t.same(receiveMdns(first.names, query(), stranger, 5_999).multicast, [])
  t.match(receiveMdns(first.names, query(), stranger, 6_000).multicast, [pi])
})

test('another type is answered with the statement that there is none, and another name not at all', async (t) => {
  t.match(receiveMdns(held(), query({ type: 28 }), stranger, 5_000).multicast, [{ ...pi, type: 28 }])
  t.match(receiveMdns(held(), query({ type: 255 }), stranger, 5_000).multicast, [{ ...pi, type: 255 }])
  const other = query({ questions: [{ name: 'pi-2.local', type: 1, wantsUnicast: false }] })
  t.same(receiveMdns(held(), other, stranger, 5_000).multicast, [])
})

test('a question for many names gets the first ones, and the others can be asked for at once', async (t) => {
  const many = Array.from({ length: 20 }, (_, index) => ({
    name: `web.shop-${index}.local`,
    addresses: ['192.168.1.240'],
  }))
  const { names } = stepped(withWanted(new Map(), many, 0, () => 0).names, 10_000)
  const questions = many.map(({ name }) => ({ name, type: 1, wantsUnicast: false }))
  const first = receiveMdns(names, query({ questions }), stranger, 15_000)
  t.same(
    first.multicast.map(({ name }) => name),
    many.slice(0, 6).map(({ name }) => name),
  )
  const second = receiveMdns(first.names, query({ questions }), stranger, 15_000)
  t.same(
    second.multicast.map(({ name }) => name),
    many.slice(6, 12).map(({ name }) => name),
  )
})

test('the one who asks for itself gets the answer alone, if all had it within 30 s', async (t) => {
  const soon = receiveMdns(held(), query({ wantsUnicast: true }), stranger, 20_000)
  t.match([soon.unicast, soon.multicast], [[pi], []])
  const late = receiveMdns(held(), query({ wantsUnicast: true }), stranger, 40_000)
  t.match([late.unicast, late.multicast], [[], [pi]])
})

test('an answer that is known for another minute is not sent again', async (t) => {
  const reply = (...answers: readonly MdnsRecord[]) =>
    receiveMdns(held(), query({ answers }), stranger, 5_000).multicast.length
  t.equal(reply(record(address, { ttl: 60 })), 0)
  t.equal(reply(record(address, { ttl: 59 })), 1)
  t.equal(reply(record('192.168.1.9')), 1)
})

test('a resolver of plain DNS gets an answer of its own, and all others none', async (t) => {
  const legacy = { isOwn: false, isLegacy: true }
  const answered = receiveMdns(held(), query(), legacy, 5_000)
  t.match([answered.legacy?.host, answered.multicast], [pi, []])
  t.equal(receiveMdns(held(), query({ type: 28 }), legacy, 5_000).legacy, undefined)
  t.equal(receiveMdns(fresh(), query(), legacy, 5_000).legacy, undefined)
  t.match(receiveMdns(held(dual), query({ type: 28 }), legacy, 5_000).legacy?.host, dual)
})

test('a name that another machine has is left to it, and probed again after a minute', async (t) => {
  const { names, lost } = receiveMdns(stepped(fresh(), 300).names, response(record('192.168.1.9')), stranger, 400)
  t.same(lost, [pi.name])
  t.equal(phaseOf(names), 'taken')
  t.same(stepNames(names, 60_399).probes, [])
  t.match(stepNames(names, 60_400).probes, [pi])
  const text = receiveMdns(fresh(), response(record('192.168.1.9', { type: 16 })), stranger, 0)
  t.equal(phaseOf(text.names), 'taken', 'whatever type its record has')
  const gone = receiveMdns(fresh(), response(record('192.168.1.9', { ttl: 0 })), stranger, 0)
  t.equal(phaseOf(gone.names), 'probing', 'one that is withdrawn is free')
})

test('a name that another program of this machine answers for is left to it', async (t) => {
  const { names, lost } = receiveMdns(fresh(), response(record(address)), here, 0)
  t.equal(phaseOf(names), 'left')
  t.same(lost, [])
  t.equal(phaseOf(receiveMdns(held(), response(record(address)), here, 5_000).names), 'held', 'its own announcement')
})

test('a name that is held is probed again when another machine has other data for it', async (t) => {
  const { names } = receiveMdns(held(), response(record('192.168.1.9')), stranger, 5_000)
  t.equal(phaseOf(names), 'probing')
  t.equal(phaseOf(receiveMdns(held(), response(record(address)), stranger, 5_000).names), 'held')
  const other = response(record('fd00:7::9'))
  t.equal(
    phaseOf(receiveMdns(held(), other, stranger, 5_000).names),
    'held',
    'a type that the name does not have is not compared',
  )
})

test('of two machines that probe for one name the one with the higher address goes on', async (t) => {
  const against = (address: string, sender = stranger) => {
    const names = stepped(fresh(), 0).names
    return receiveMdns(names, query({ type: 255, authorities: [record(address)] }), sender, 100).names.get(pi.name)
      ?.state
  }
  t.match(against('192.168.1.6'), { phase: 'probing', sent: 0, dueMs: 1_100 })
  t.match(against('192.168.1.4'), { phase: 'probing', sent: 1, dueMs: 250 })
  t.match(against(address), { phase: 'probing', sent: 1, dueMs: 250 }, 'its own probe')
  t.match(against('192.168.1.6', here), { phase: 'probing', sent: 1, dueMs: 250 }, 'of this machine')
})

test('a name is defended at once against a probe', async (t) => {
  const first = receiveMdns(held(), query(), stranger, 5_000)
  const probe = query({ type: 255, wantsUnicast: false, authorities: [record('192.168.1.9')] })
  t.same(receiveMdns(first.names, probe, stranger, 5_200).multicast, [])
  t.match(receiveMdns(first.names, probe, stranger, 5_250).multicast, [pi])
})

test('another address of a name that is held is announced without a probe', async (t) => {
  const { names, withdrawn } = withWanted(held(), [{ ...pi, addresses: ['192.168.1.6'] }], 5_000, () => 0)
  t.same(withdrawn, [pi], 'the one of before')
  t.match(stepNames(names, 5_000), { probes: [], announcements: [{ addresses: ['192.168.1.6'] }] })
})

test('a name that is not wanted any more is withdrawn if it was announced', async (t) => {
  t.match(
    withWanted(held(), [], 5_000, () => 0),
    { withdrawn: [pi] },
  )
  t.same(withWanted(fresh(), [], 5_000, () => 0).withdrawn, [])
  t.equal(withWanted(held(), [pi], 5_000, () => 0).names.get(pi.name)?.state.phase, 'held')
})

test('a name with addresses of both families is probed, answered and defended for each of its types', async (t) => {
  const asked = (type: number) => receiveMdns(held(dual), query({ type }), stranger, 5_000).multicast
  for (const type of [1, 28, 16, 255]) t.match(asked(type), [{ ...dual, type }])
  const questions = [1, 28].map((type) => ({ name: pi.name, type, wantsUnicast: false }))
  t.match(
    receiveMdns(held(dual), query({ questions }), stranger, 5_000).multicast,
    [{ ...dual, type: 255 }],
    'who asks for both gets both in one answer',
  )
  for (const other of ['192.168.1.9', 'fd00:7::9']) {
    t.equal(phaseOf(receiveMdns(held(dual), response(record(other)), stranger, 5_000).names), 'probing', other)
    t.equal(phaseOf(receiveMdns(fresh(dual), response(record(other)), stranger, 0).names), 'taken', other)
  }
  for (const own of dual.addresses)
    t.equal(phaseOf(receiveMdns(held(dual), response(record(own)), stranger, 5_000).names), 'held', own)
})

test('of several addresses none is sent without the others, unless all of them are known', async (t) => {
  const reply = (type: number, ...known: readonly string[]) =>
    receiveMdns(held(dual), query({ type, answers: known.map((one) => record(one)) }), stranger, 5_000).multicast.length
  t.equal(reply(28, 'fd00:7::5', '2001:db8::5'), 0)
  t.equal(reply(28, 'fd00:7::5'), 1)
  t.equal(reply(255, 'fd00:7::5', '2001:db8::5'), 1)
  t.equal(reply(255, ...dual.addresses), 0)
  t.equal(reply(16, ...dual.addresses), 1, 'that there is no other type')
})

test('of two machines that probe the later list of records goes on, and the longer one where they begin alike', async (t) => {
  const against = (own: HostName, ...theirs: readonly string[]) => {
    const authorities = theirs.map((one) => record(one))
    const probing = stepped(fresh(own), 0).names
    const { state } = receiveMdns(probing, query({ type: 255, authorities }), stranger, 100).names.get(pi.name) ?? {}
    return state?.phase === 'probing' && state.sent === 0 ? 'waits' : 'goes on'
  }
  t.equal(against(dual, address), 'goes on')
  t.equal(against(pi, ...dual.addresses), 'waits')
  t.equal(against(dual, ...dual.addresses.toReversed()), 'goes on', 'its own probe, in any order')
  t.equal(against(dual, address, 'fd00:7::5', '2001:db8::6'), 'waits')
  t.equal(against({ ...pi, addresses: ['fd00:7::5'] }, '192.168.1.255'), 'goes on', 'AAAA is later than A')
})

test('an address that a name no longer has is withdrawn, and the others stay', async (t) => {
  const { names, withdrawn } = withWanted(held(dual), [{ ...dual, addresses: [address, 'fd00:7::5'] }], 5_000, () => 0)
  t.same(withdrawn, [{ name: pi.name, addresses: ['2001:db8::5'] }])
  t.match(stepNames(names, 5_000).announcements, [{ addresses: [address, 'fd00:7::5'] }])
  t.same(withWanted(names, [{ ...dual, addresses: [address, 'fd00:7::5'] }], 6_000, () => 0).withdrawn, [])
})

test('names that others have are those that are taken or left', async (t) => {
  t.same(namesOfOthers(held()), [])
  t.same(namesOfOthers(receiveMdns(fresh(), response(record('192.168.1.9')), stranger, 0).names), [pi.name])
  t.same(namesOfOthers(receiveMdns(fresh(), response(record(address)), here, 0).names), [pi.name])
})
