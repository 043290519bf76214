import { test } from 'tap'
import { simulate } from './simulation.ts'
import { worldOf } from './worlds.ts'

/** Another world begins if it would end by then, as long as the longest so far takes. */
const wholeMs = 60_000
const size = { nodes: 3, faultMinutes: 10 }

test('new seeds hold, for a minute', async (t) => {
  const beganMs = performance.now()
  const passedMs = () => performance.now() - beganMs
  let longestMs = 0
  for (let seed = Date.now() % 1_000_000_000; passedMs() + longestMs < wholeMs; seed++) {
    const seedBeganMs = passedMs()
    const { violations, story } = await simulate({ seed, ...size })
    longestMs = Math.max(longestMs, passedMs() - seedBeganMs)
    const again = `npm run sim -- --seed ${seed} --nodes ${size.nodes} --fault-minutes ${size.faultMinutes}`
    t.same(violations, [], violations.length === 0 ? `seed ${seed} (${worldOf(seed)})` : [...story, again].join('\n'))
    if (violations.length > 0) return
  }
})
