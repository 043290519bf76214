/** Asks the agent that runs on this machine, at its local socket. */
import { request } from 'node:http'
import { withDeadline } from '../../../daemon/deadline.ts'
import { collectedBytes } from '../../../daemon/http/collected-bytes.ts'

const answerMs = 10_000
/** More than the messages of a fleet's network have together. */
const mostBytes = 256 * 1024 * 1024

/**
 * The body of its answer. Rejects with the reason where no agent answers 200 within 10 s: it does not run, is of a version without the
 * path, or its socket is another user's.
 */
export async function askAgent(socketPath: string, path: string): Promise<string> {
  const asked = withDeadline(answerMs, undefined, (signal) => get(socketPath, path, signal), 'No answer')
  const { status, body } = await asked.catch((cause: unknown) => {
    throw new Error(`No agent answers at ${socketPath}`, { cause })
  })
  if (status !== 200) throw new Error(`The agent at ${socketPath} answered ${status}: it may be of another version`)
  return body
}

type Reply = { readonly status: number | undefined; readonly body: string }

function get(socketPath: string, path: string, signal: AbortSignal): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, signal, agent: false }, (response) => {
      const bytes = collectedBytes(mostBytes)
      response.on('data', (piece: Buffer) => {
        if (!bytes.add(piece)) asked.destroy(new Error(`The answer has more than ${mostBytes} bytes, or is cut up`))
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode, body: bytes.take().toString('utf8') }))
    })
    asked.on('error', reject)
    asked.end()
  })
}
