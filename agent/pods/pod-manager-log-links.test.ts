import { test } from 'tap'
import { nodeInMemory, podRunning } from '../testing/node-in-memory.ts'

test('links to logs are made from the containers of a pod while it runs, and end with it', async (t) => {
  const seen: string[] = []
  const logLinks = {
    observe: async (uid: string, containers: readonly { readonly state: string }[]) =>
      void seen.push(`${uid}: ${containers.map(({ state }) => state).join(' ')}`),
    clean: async () => void seen.push('clean'),
  }
  const { clock, world } = nodeInMemory(t, { logLinks })
  await clock.advance(1_000)
  t.same(seen, ['clean'], 'once, at the start')
  world.want(podRunning('web'))
  await clock.advance(1_000)
  t.equal(seen.at(-1), 'uid-of-web: running running')
  world.want()
  await clock.advance(60_000)
  t.equal(seen.at(-1), 'uid-of-web: ')
  t.equal(seen.filter((one) => one === 'clean').length, 1)
})
