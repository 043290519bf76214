import { type Test, test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { Election, Term } from '../store/election/election.ts'
import { standbyLoop } from './standby-loop.ts'

const term: Term = { sinceMs: 0, transitions: 3 }

function world(t: Test) {
  const clock = fakeClock()
  const log = quietLog(t)
  let leader: string | undefined
  let elect: (won: Term | undefined) => void = () => undefined
  let fail: (error: Error) => void = () => undefined
  const campaigns: string[] = []
  const election: Pick<Election, 'campaign'> & Election = {
    campaign(server, signal) {
      campaigns.push(server)
      return new Promise((resolve, reject) => {
        elect = resolve
        fail = reject
        signal.addEventListener('abort', () => resolve(undefined), { once: true })
      })
    },
    keep: async () => undefined,
    isLeading: () => false,
    leader: () => undefined,
    resign: async () => undefined,
  }
  const facts = { api: 'https://a:6443' }
  const loop = standbyLoop({ election, leader: () => leader, server: 'https://a:6443', facts, clock, log })
  return {
    ...{ clock, log, loop, campaigns },
    setLeader: (server: string | undefined) => {
      leader = server
    },
    elect: () => elect(term),
    fail: () => fail(new Error('It must not lead')),
  }
}

test('each leader that it finds is logged once, and shown as its status', async (t) => {
  const { clock, log, loop, setLeader } = world(t)
  const stop = new AbortController()
  const running = loop.run(async () => void t.fail('It was not elected'), stop.signal)
  await clock.advance(1_000)
  t.same(log.messages('info'), [])
  t.match(loop.status(), /No controller leads/)
  setLeader('https://b:6443')
  await clock.advance(5_000)
  t.same(log.messages('info'), ['Controller stands by'])
  t.match(log.lines[0]?.facts, { leader: 'https://b:6443', api: 'https://a:6443' })
  t.match(loop.status(), /https:\/\/b:6443 leads/)
  setLeader('https://c:6443')
  await clock.advance(1_000)
  t.equal(log.messages('info').length, 2)
  stop.abort()
  await running
})

test('once it is elected it leads until that ends', async (t) => {
  const { clock, log, loop, campaigns, elect } = world(t)
  const stop = new AbortController()
  const terms: Term[] = []
  let end = () => {}
  const lead = (won: Term) => {
    terms.push(won)
    return new Promise<void>((resolve) => {
      end = resolve
    })
  }
  let isOver = false
  const running = loop.run(lead, stop.signal).then(() => {
    isOver = true
  })
  await clock.settle()
  t.same(campaigns, ['https://a:6443'])
  elect()
  await clock.settle()
  t.same(terms, [term])
  t.same(log.messages('info'), ['Controller leads'])
  t.equal(isOver, false)
  t.equal(clock.sleepers, 0, 'it does not look for a leader any more')
  end()
  await running
})

test('an election that fails ends it with the reason', async (t) => {
  const { clock, loop, fail } = world(t)
  const running = loop.run(async () => undefined, new AbortController().signal)
  await clock.settle()
  fail()
  await t.rejects(running, /must not lead/)
})
