import { test } from 'tap'
import { ApiError } from '../../../api/api-error.ts'
import { type Identity, mastersGroup } from '../../../api/identity.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { answerRequest } from './answer-request.ts'
import type { ApiRequest, RequestNeeds } from './api-request.ts'
import { failed, receivedState } from './filter-state.ts'
import {
  authentication,
  authorization,
  flowControlled,
  impersonation,
  paidIfRefused,
  strangersShare,
} from './filters.ts'

type Turns = NonNullable<RequestNeeds['flowControl']>

const admin: Identity = { user: 'admin', groups: [mastersGroup] }
const eve: Identity = { user: 'eve', groups: [] }

test('the state that a filter gets stays as it is; what it finds out is in the state that it returns', async (t) => {
  const { needs } = await anApi(t)
  const state = Object.freeze(receivedState(aRequest('/api/v1/pods'), needs, Object.freeze({})))
  const known = await authentication(state, needs)
  t.same(state.sender, {})
  t.match(known.sender, { identity: admin })
  const acting = await impersonation(known, needs)
  t.match(acting.identity, admin)
  t.match(await authorization(acting, needs), { sender: { decision: 'allow' }, attributes: { full: { verb: 'list' } } })
  t.same(acting.sender, known.sender)
})

test('a refusal is an outcome beside what is known of the sender', async (t) => {
  const { needs } = await anApi(t)
  const received = receivedState(aRequest('/api/v1/pods'), needs, { identity: eve })
  const refused = await authorization({ ...received, identity: eve }, needs)
  t.match(refused, {
    sender: { identity: eve, decision: 'forbid' },
    outcome: { kind: 'failed', error: { reason: 'Forbidden' } },
  })
})

test('who is refused pays: as itself once it is known, by its address before', async (t) => {
  const { needs } = await anApi(t)
  const paid: string[] = []
  const flowControl: Turns = {
    async admitInTurn({ level, key }, streamWeight) {
      paid.push(`${level}/${key} ${streamWeight}`)
      return { readBody: () => undefined, answered: () => undefined, release: () => undefined }
    },
  }
  const limited: RequestNeeds = { ...needs, flowControl }
  const refusing = paidIfRefused(() => {
    throw new ApiError('Forbidden', 'not this one')
  })
  const watch = { ...aRequest('/api/v1/pods'), query: new URLSearchParams('watch=1'), address: '192.0.2.7' }
  for (const sender of [{}, { identity: eve }]) {
    const state = await refusing(receivedState(watch, limited, sender), limited)
    t.match(state, { outcome: { kind: 'failed', error: { message: 'not this one' } } })
    t.ok(state.admission, 'its seat is given back with the answer')
  }
  t.same(paid, ['catch-all/192.0.2.7 0', 'global-default/eve 0'])
  const passing = paidIfRefused((state) => state)
  const passed = await passing(receivedState(watch, limited, {}), limited)
  t.equal(passed.admission, undefined)
})

test('a request whose controller begins to lead on its way has one place, that of its sender', async (t) => {
  const { needs } = await anApi(t)
  const places: string[] = []
  const flowControl: Turns = {
    async admitInTurn({ level }) {
      places.push(level)
      return { readBody: () => undefined, answered: () => undefined, release: () => places.splice(0, 1) }
    },
  }
  const limited: RequestNeeds = { ...needs, flowControl }
  const page = await strangersShare(receivedState(aRequest('/ui/login'), limited, {}), limited)
  t.same(places, ['catch-all'])
  await flowControlled({ ...page, sender: { identity: eve } }, limited)
  t.same(places, ['global-default'])
})

test('the filters have their order: a request over its limit is not authorized, one without a right reads no body', async (t) => {
  const asked: string[] = []
  const flowControl: Turns = {
    async admitInTurn() {
      asked.push('limit')
      throw new ApiError('TooManyRequests', 'wait')
    },
  }
  const { needs } = await anApi(t)
  const access: RequestNeeds['access'] = {
    ...needs.access,
    decide(identity, attributes) {
      asked.push('rights')
      return needs.access.decide(identity, attributes)
    },
  }
  const readBody = async () => {
    asked.push('body')
    return Buffer.from('{}')
  }
  const request = { ...aRequest('/api/v1/namespaces/default/configmaps'), method: 'POST', readBody }
  const asEve = Object.freeze({ identity: eve })
  t.match(await answerRequest(request, { ...needs, access, flowControl }, asEve), { answer: { code: 429 } })
  t.same(asked, ['limit'])
  asked.length = 0
  const { answer, sender } = await answerRequest(request, { ...needs, access }, asEve)
  t.match(answer, { code: 403 })
  t.match(sender, { identity: eve, decision: 'forbid' })
  t.notOk(asked.includes('body'))
})

test('an outcome is kept beside the state that it ended', async (t) => {
  const { needs } = await anApi(t)
  const state = receivedState(aRequest('/version'), needs, {})
  const error = new Error('no')
  t.same(failed(state, error).outcome, { kind: 'failed', error })
  t.equal(state.outcome, undefined)
})

function aRequest(path: string): ApiRequest {
  return {
    method: 'GET',
    path,
    query: new URLSearchParams(),
    certificate: { trusted: true, identity: admin, validSinceMs: 0, validUntilMs: Infinity, serialNumber: '01' },
    headers: {},
    readBody: async () => Buffer.alloc(0),
    signal: new AbortController().signal,
  }
}
