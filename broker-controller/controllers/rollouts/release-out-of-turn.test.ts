import { test } from 'tap'
import { type AgentAdmission, agentReleaseAnnotation, agentUpdateAnnotation } from '../../../api/node/agent-update.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { releaseOutOfTurn } from './release-out-of-turn.ts'
import type { StoredRollout } from './rollout-object.ts'
import { usualRules } from './rollout-rules.ts'

const release = (sequence: number, floor = 1) => ({
  ...{ version: `${sequence}.0.0`, sequence, floor, digest: String(sequence % 10).repeat(64) },
})
const rollout: StoredRollout = {
  wish: { target: release(30, 20), releases: [release(30, 20), release(20)], rules: usualRules },
  state: { ring: 0 },
}
const { floor: _, ...target } = release(30)

function nodeWith(sequence: number | undefined, admission?: AgentAdmission) {
  return aNode({
    annotations: {
      ...(sequence !== undefined && { [agentUpdateAnnotation]: JSON.stringify({ version: 'any', sequence }) }),
      ...(admission && { [agentReleaseAnnotation]: JSON.stringify(admission) }),
    },
  })
}

const given = (node: ReturnType<typeof nodeWith>, of: StoredRollout | undefined = rollout) =>
  releaseOutOfTurn(node, of)?.sequence

test('a node can have the release of the rollout before its turn, or the step before it', async (t) => {
  t.equal(given(nodeWith(25)), 30)
  t.equal(given(nodeWith(10)), 20)
  t.equal(given(nodeWith(25, { ...target, withdrawn: true })), 30, 'it was withdrawn by a pause that is over')
})

test('a node that has it, may have it, or took it back gets nothing', async (t) => {
  t.equal(given(nodeWith(30)), undefined)
  t.equal(given(nodeWith(25, target)), undefined)
  t.equal(given(nodeWith(25, { ...target, outcome: 'rolledBack', withdrawn: true })), undefined)
  t.equal(given(nodeWith(undefined)), undefined, 'its agent does not update itself')
})

test('nothing is given without a rollout, or while it pauses', async (t) => {
  t.equal(releaseOutOfTurn(nodeWith(25), undefined), undefined)
  t.equal(given(nodeWith(25), { ...rollout, state: { ring: 0, paused: 'failures' } }), undefined)
})
