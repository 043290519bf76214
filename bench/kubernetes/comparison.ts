/** Sends inputs to servers, and compares the answers. */
import { randomBytes } from 'node:crypto'
import { request } from 'node:https'
import { fieldOf, isObject, parseJson } from '../../api/text/json.ts'
import type { ApiAccess } from '../../broker-controller/commands/connection/kubeconfig.ts'
import { type ApiInput, absent, type ExpectedAnswer, type SentInput } from './api-input.ts'

export type AnsweredInput = { readonly code: number; readonly text: string }
export type SendInput = (input: SentInput) => Promise<AnsweredInput>

const deadlineMs = 30_000

export function inputSender({ url, ca, certificate, key, token }: ApiAccess): SendInput {
  return ({ method, path, body, type = 'application/json', accept = 'application/json' }) =>
    new Promise((resolve, reject) => {
      const isSentAsIs = typeof body === 'string' || body === undefined || Buffer.isBuffer(body)
      const text = isSentAsIs ? body : JSON.stringify(body)
      const headers = {
        accept,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(text !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(text) }),
      }
      const tls = { ca, ...(certificate && { cert: certificate }), ...(key && { key }) }
      const asked = request(
        new URL(path, url),
        { method, headers, agent: false, timeout: deadlineMs, ...tls },
        (answer) => {
          const pieces: Buffer[] = []
          answer.on('data', (piece: Buffer) => pieces.push(piece))
          answer.once('error', reject)
          answer.once('end', () =>
            resolve({ code: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString('utf8') }),
          )
        },
      )
      asked.once('timeout', () =>
        asked.destroy(new Error(`${method} ${path}: no answer within ${deadlineMs / 1000} s`)),
      )
      asked.once('error', reject)
      asked.end(text)
    })
}

/** The answers to all inputs, in their order, in a namespace that is made and deleted. `expected` selects what is kept of them. */
export async function answersTo(inputs: readonly ApiInput[], send: SendInput): Promise<readonly ExpectedAnswer[]> {
  const namespace = `compare-${randomBytes(4).toString('hex')}`
  const inNamespace = (input: SentInput): SentInput => ({ ...input, path: input.path.replace('/NS', `/${namespace}`) })
  await succeed(send, { method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: namespace } } })
  const answers: ExpectedAnswer[] = []
  try {
    for (const { before = [], sent, expected } of inputs) {
      for (const one of before) await succeed(send, inNamespace(one))
      answers.push(observed(await send(inNamespace(sent)), expected))
    }
  } finally {
    await send({ method: 'DELETE', path: `/api/v1/namespaces/${namespace}` })
  }
  return answers
}

async function succeed(send: SendInput, input: SentInput): Promise<void> {
  const { code, text } = await send(input)
  if (code >= 300) throw new Error(`${input.method} ${input.path} was refused with ${code}: ${text.slice(0, 500)}`)
}

/** What `expected` names of an answer. */
export function observed({ code, text }: AnsweredInput, { fields = {} }: ExpectedAnswer): ExpectedAnswer {
  const body = parseJson(text)
  const found = Object.keys(fields).map((path) => [path, path === '' ? text : valueAt(body, path)])
  return { code, ...(found.length > 0 && { fields: Object.fromEntries(found) }) }
}

function valueAt(body: unknown, path: string): unknown {
  let value = body
  for (const part of path.split('.')) {
    if (Array.isArray(value)) value = value[Number(part)]
    else value = isObject(value) ? fieldOf(value, part) : undefined
  }
  return value === undefined ? absent : value
}

/** Each difference as `PATH: VALUE, not VALUE`; empty: they are equal. */
export function differences(expected: ExpectedAnswer, found: ExpectedAnswer): readonly string[] {
  const rows: readonly (readonly [string, unknown, unknown])[] = [
    ['code', expected.code, found.code],
    ...Object.entries(expected.fields ?? {}).map(([path, value]) => [path, value, found.fields?.[path]] as const),
  ]
  return rows.flatMap(([path, wanted, got]) => {
    const [one, other] = [sortedJson(wanted), sortedJson(got)]
    return one === other ? [] : [`${path || 'text'}: ${other}, not ${one}`]
  })
}

function sortedJson(value: unknown): string {
  const sorted = (_: string, one: unknown) =>
    isObject(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one
  return JSON.stringify(value, sorted) ?? absent
}
