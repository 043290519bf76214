/** Clients of an API under test that have the token of a service account: requests, and watches that stay open. */
import { request as httpsRequest, type RequestOptions } from 'node:https'
import type { Test } from 'tap'
import { administrator } from '../../api/identity.ts'
import type { ApiUnderTest } from './api-under-test.ts'

type Asked = Pick<RequestOptions, 'method' | 'cert' | 'key' | 'localAddress'> & {
  readonly headers?: { readonly [name: string]: string }
  readonly body?: unknown
}

export type OpenAnswer = {
  readonly code: number
  /** What came so far. */
  text(): string
  /** Resolves at its end: whether it was a regular one. */
  readonly ended: Promise<boolean>
  isOver(): boolean
}

export type TokenClients = {
  /** The token of a new service account, with such a part of the role `edit` in its namespace, by a RoleBinding of its name. */
  editor(namespace: string, name: string): Promise<string>
  /** Resolves with the head of the answer. */
  open(path: string, asked?: Asked): Promise<OpenAnswer>
  /** As the administrator. Throws where the answer is an error. */
  admin(method: string, path: string, body?: unknown): Promise<string>
}

const group = 'rbac.authorization.k8s.io'
const rules = [
  { apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: ['*'] },
  { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['impersonate'] },
]

export const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

export function tokenClients(t: Pick<Test, 'teardown'>, api: ApiUnderTest): TokenClients {
  const { store, authority, url } = api
  const { certificate: cert, key } = api.issueFor(administrator)

  const open: TokenClients['open'] = (path, { body, headers, ...more } = {}) =>
    new Promise((resolve, reject) => {
      const content = body === undefined ? undefined : JSON.stringify(body)
      const type = body === undefined ? {} : { 'content-type': 'application/json' }
      const options = { ca: authority.certificate, agent: false, headers: { ...type, ...headers }, ...more }
      const request = httpsRequest(`${url}${path}`, options, (response) => {
        const pieces: Buffer[] = []
        let isOver = false
        response.on('data', (piece: Buffer) => pieces.push(piece)).on('error', () => undefined)
        const ended = new Promise<boolean>((done) => {
          response.once('close', () => {
            isOver = true
            done(response.complete)
          })
        })
        const text = () => Buffer.concat(pieces).toString()
        resolve({ code: response.statusCode ?? 0, text, ended, isOver: () => isOver })
      })
      t.teardown(() => void request.destroy())
      request.on('error', reject).end(content)
    })

  const admin: TokenClients['admin'] = async (method, path, body) => {
    const { code, text, ended } = await open(path, { method, cert, key, body })
    await ended
    if (code >= 400) throw new Error(`${method} ${path}: ${code} ${text()}`)
    return text()
  }

  return {
    open,
    admin,
    async editor(namespace, name) {
      const roles = `/apis/${group}/v1/namespaces/${namespace}`
      if ((await store.get('namespaces', { namespace: '', name: namespace })) === undefined) {
        await admin('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
        await admin('POST', `${roles}/roles`, { metadata: { name: 'editor' }, rules })
      }
      const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`
      await admin('POST', accounts, { metadata: { name } })
      await admin('POST', `${roles}/rolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: group, kind: 'Role', name: 'editor' },
        subjects: [{ kind: 'ServiceAccount', name, namespace }],
      })
      return JSON.parse(await admin('POST', `${accounts}/${name}/token`, { spec: {} })).status.token
    },
  }
}
