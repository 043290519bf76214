import { test } from 'tap'
import { admissionOf, agentUpdateAnnotation } from '../../../api/node/agent-update.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { LocalRequest } from '../../apiserver/filters/in-process-api.ts'
import type { StoredRollout } from '../../controllers/rollouts/rollout-object.ts'
import { usualRules } from '../../controllers/rollouts/rollout-rules.ts'
import { installs } from './installs.ts'

const target = { version: '1.5.0', sequence: 15, digest: 'a'.repeat(64), floor: 1 }
const node = aNode({ annotations: { [agentUpdateAnnotation]: JSON.stringify({ version: '1.4.0', sequence: 14 }) } })

test('the button lets a machine take the release of the rollout, once a minute', async (t) => {
  const clock = fakeClock()
  const requests: LocalRequest[] = []
  let rollout: StoredRollout | undefined
  const { press, loop } = installs({
    ...{ clock, log: quietLog(t), rollout: () => rollout },
    nodeNamed: (name) => (name === 'pi-01' ? node : undefined),
    async request(request) {
      requests.push(request)
      return { code: 200, body: {} }
    },
  })
  const ending = new AbortController()
  const running = loop.run(ending.signal)
  t.teardown(async () => {
    ending.abort()
    await running
  })
  press('pi-01')
  await clock.advance(1_000)
  t.same(requests, [], 'there is no rollout')
  rollout = { wish: { target, releases: [target], rules: usualRules }, state: { ring: 0 } }
  for (const name of ['pi-01', 'pi-01', 'pi-02']) press(name)
  await clock.advance(1_000)
  t.equal(requests.length, 1)
  t.match(requests, [{ method: 'PATCH', path: '/api/v1/nodes/pi-01' }])
  const { metadata } = (requests[0]?.body ?? {}) as { metadata: { annotations: Record<string, string> } }
  t.match(admissionOf({ metadata: { name: 'pi-01', ...metadata } }), { version: '1.5.0', sequence: 15 })
})
