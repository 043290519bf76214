/** Answers what expressions ask of the authorizer, each question of a request once. */
import { serviceAccountGroups, serviceAccountUser } from '../../../api/access/service-account-names.ts'
import type { Identity } from '../../../api/identity.ts'
import { parseFieldSelector } from '../../../api/selectors.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { AccessAnswer, AccessQuestion, AskAccess } from '../../cel/functions/authorization.ts'
import type { Attributes, Authorizer } from '../handlers/authorizer.ts'
import type { KindRegistry } from '../handlers/strategy.ts'

export type AccessNeeds = {
  readonly access: Pick<Authorizer, 'decide'>
  readonly kinds: Pick<KindRegistry, 'served'>
}

/** For the expressions of one request of this user. */
export function accessQuestions(user: Identity, { access, kinds }: AccessNeeds): AskAccess {
  const known = new Map<string, AccessAnswer>()
  const answered = async (question: AccessQuestion): Promise<AccessAnswer> => {
    try {
      const { account } = question
      const identity = account === undefined ? user : accountIdentity(account)
      return { ...(await access.decide(identity, attributesOf(question, kinds))), error: '' }
    } catch (error) {
      return { allowed: false, reason: '', error: messageOf(error) }
    }
  }
  return async (question) => {
    const key = JSON.stringify(question)
    const before = known.get(key)
    if (before !== undefined) return before
    const answer = await answered(question)
    known.set(key, answer)
    return answer
  }
}

function accountIdentity({ namespace, name }: { readonly namespace: string; readonly name: string }): Identity {
  return { user: serviceAccountUser(namespace, name), groups: serviceAccountGroups(namespace) }
}

function attributesOf(question: AccessQuestion, { served }: Pick<KindRegistry, 'served'>): Attributes {
  const { verb } = question
  if ('path' in question) return { kind: 'path', verb, path: question.path }
  const { group, resource, subresource, namespace, name, fieldSelector } = question
  const kind = served.find((one) => one.group === group && one.name === resource)
  const parsed = parseFieldSelector(kind?.selectableFields ?? [], fieldSelector)
  // A selector that cannot be read narrows nothing.
  const fields = parsed.ok ? parsed.value.filter(({ equal }) => equal) : []
  const exact = new Map(fields.map(({ field, value }) => [field, value]))
  return { kind: 'resource', verb, group, resource, subresource, namespace, name, fields: exact }
}
