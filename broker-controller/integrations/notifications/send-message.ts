/** HTTP to a channel: one request with a deadline. Tokens and URLs are read for each message, and are in no error. */
import { TooLate, withDeadline } from '../../../daemon/deadline.ts'
import { readSecretLine, SecretFileError } from '../../../daemon/process/secret-file.ts'
import type { Notification } from './messages.ts'
import { type HttpChannel, urlProblem } from './notify-settings.ts'

const deadlineMs = 10_000

/** `isFinal`: another attempt would fail, too. */
export class SendError extends Error {
  readonly isFinal: boolean
  constructor(message: string, isFinal: boolean, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SendError'
    this.isFinal = isFinal
  }
}

/** Rejects with a SendError. */
export async function sendMessage(channel: HttpChannel, message: Notification, signal: AbortSignal): Promise<void> {
  const url = 'file' in channel.url ? await secretIn(channel.url.file) : channel.url.value
  const problem = urlProblem(url, channel.tokenFile !== undefined)
  if (problem !== undefined) throw new SendError(`Cannot notify ${channel.name}: the URL ${problem}`, true)
  const token = channel.tokenFile === undefined ? undefined : await secretIn(channel.tokenFile)
  const { body, headers } = channelRequest(channel, message)
  let answer: Response
  try {
    answer = await withDeadline(deadlineMs, signal, (own) =>
      fetch(url, {
        method: 'POST',
        body,
        headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
        // The token is for this server only.
        redirect: 'manual',
        signal: own,
      }),
    )
  } catch (error) {
    throw new SendError(`Cannot notify ${channel.name}: ${reasonOf(error)}`, false)
  }
  await answer.body?.cancel().catch(() => undefined)
  if (answer.ok) return
  const { status } = answer
  // 429 and errors of the server pass; another refusal stays.
  const isFinal = status < 500 && status !== 429 && status !== 408
  throw new SendError(`Cannot notify ${channel.name}: the server answered ${status}`, isFinal)
}

type ChannelRequest = { readonly body: string; readonly headers: { readonly [name: string]: string } }

/** ntfy: https://docs.ntfy.sh/publish, with the text as the body. */
function channelRequest({ type, template, contentType }: HttpChannel, message: Notification): ChannelRequest {
  if (type === 'webhook') {
    return { body: rendered(template, message, escapeFor(contentType)), headers: { 'content-type': contentType } }
  }
  const isFiring = message.status === 'firing'
  return {
    body: message.text,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      title: message.title,
      priority: isFiring ? 'high' : 'default',
      tags: isFiring ? 'warning' : 'white_check_mark',
    },
  }
}

type Escape = (value: string) => string

/** Any node may report any text: it must not leave its string in JSON, nor its field in a form. */
function escapeFor(contentType: string): Escape {
  if (contentType.includes('json')) return (value) => JSON.stringify(value).slice(1, -1)
  const isForm = contentType.startsWith('application/x-www-form-urlencoded')
  if (isForm) return (value) => new URLSearchParams([['', value]]).toString().slice(1)
  return (value) => value
}

/** `{{title}}`, `{{message}}`, `{{status}}` and `{{count}}`. */
function rendered(template: string, { title, text, status, count }: Notification, escaped: Escape): string {
  const values = new Map([
    ['title', title],
    ['message', text],
    ['status', status],
    ['count', String(count)],
  ])
  return template.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => {
    const value = values.get(name)
    return value === undefined ? whole : escaped(value)
  })
}

/** The first line of a file that only its owner can read. Rejects with a SendError. */
async function secretIn(path: string): Promise<string> {
  try {
    return await readSecretLine(path)
  } catch (error) {
    if (!(error instanceof SecretFileError)) throw error
    throw new SendError(error.message, error.isFinal)
  }
}

/** Without the URL, which the messages of fetch may contain. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if (error instanceof TooLate) return `no answer within ${deadlineMs / 1000} s`
  return error.cause === undefined ? error.name : codeOf(error.cause)
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
}
