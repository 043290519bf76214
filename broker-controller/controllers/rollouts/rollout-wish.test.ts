import { test } from 'tap'
import { usualRules } from './rollout-rules.ts'
import { newestWish, type OfferedRelease, wishFor } from './rollout-wish.ts'

const offered = (version: string, sequence: number, program = 'bramble-agent'): OfferedRelease => ({
  ...{ program, version, sequence, floor: 1, digest: String(sequence % 10).repeat(64) },
})
const releases = [offered('2.1.0', 21), offered('2.0.0', 20), offered('1.0.0', 10)]

test('a rollout has the releases up to its target, and only of those that are served', async (t) => {
  const wish = wishFor('2.0.0', releases, usualRules)
  t.equal(wish.target.sequence, 20)
  t.same(
    wish.releases.map(({ version }) => version),
    ['2.0.0', '1.0.0'],
  )
  t.throws(() => wishFor('3.0.0', releases, usualRules), { message: /not served here: add it/ })
  t.equal(wish.controller, undefined)
  const own = offered('2.0.0', 20, 'bramble-controller')
  t.same(wishFor('2.0.0', [...releases, own], usualRules).controller, { version: '2.0.0' }, 'the controller is first')
  t.equal(wishFor('2.0.0', [...releases, own], usualRules, true).controller, undefined)
  const ofController = offered('3.0.0', 30, 'bramble-controller')
  t.throws(() => wishFor('3.0.0', [ofController], usualRules), { message: /not served here/ }, 'nodes run the agent')
})

test('the newest release of the agent is rolled out with the usual rules, after the controller', async (t) => {
  t.equal(newestWish([]), undefined)
  t.equal(newestWish([offered('3.0.0', 30, 'bramble-controller')]), undefined)
  const served = [...releases.toReversed(), offered('2.1.0', 21, 'bramble-controller')]
  t.match(newestWish(served), { target: { version: '2.1.0' }, rules: usualRules, controller: { version: '2.1.0' } })
})
