/**
 * The admin socket of a running controller: HTTP on a Unix socket in its data directory, which only the owner of that
 * directory and root can open.
 */
import { createReadStream } from 'node:fs'
import { chmod, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { decode } from '../../../api/decode.ts'
import { bool, type Described, object, optional, text as textField } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { aborted } from '../../../daemon/aborted.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'

const backupPath = '/backup'
const reloadPath = '/reload'
const settingsPath = '/settings'
const leaderPath = '/leader'
const rotateSecretsKeyPath = '/rotate-secrets-key'
/** The kernel's limit for the path of a socket, with its closing zero. */
const longestSocketPath = 107

const leaderStatusSchema = object({ leads: bool, leader: optional(textField) })
/** Whether this controller leads; `leader`: where another one does, its API, `https://HOST:PORT`. */
export type LeaderStatus = Described<typeof leaderStatusSchema>

export function adminSocketPath(dataDir: string): string {
  return join(dataDir, 'controller.sock')
}

export type AdminSocketNeeds = {
  readonly path: string
  /** A backup in a file, which is removed once it is sent. */
  readonly backup: () => Promise<string>
  /** Reads the authority's folder again. */
  readonly reload: () => Promise<void>
  /** Encrypts all Secrets with another key. Its ID. */
  readonly rotateSecretsKey: () => Promise<string>
  /** What another controller of the fleet is configured with, as JSON. */
  readonly settings: () => string
  readonly leaderStatus: () => LeaderStatus
  readonly log: Log
}

export interface AdminSocket {
  /** Rejects when the socket cannot be made. */
  listen(): Promise<void>
  run(signal: AbortSignal): Promise<void>
}

/** Call it while holding the lock on the data directory: it removes the socket that a killed controller left. */
export function adminSocket(needs: AdminSocketNeeds): AdminSocket {
  const { path, backup, reload, rotateSecretsKey, settings, leaderStatus, log } = needs
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing))

  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    switch (`${incoming.method} ${incoming.url}`) {
      case `GET ${backupPath}`:
        return handOutBackup(outgoing)
      case `GET ${settingsPath}`:
        return void outgoing.writeHead(200, { 'content-type': 'application/json' }).end(settings())
      case `GET ${leaderPath}`:
        return void outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(leaderStatus()))
      case `POST ${reloadPath}`:
        return reload().then(
          () => void outgoing.writeHead(200).end(),
          (error: unknown) => refuse(outgoing, 500, storyOf(error)),
        )
      case `POST ${rotateSecretsKeyPath}`:
        return rotateSecretsKey().then(
          (id) => void outgoing.writeHead(200, { 'content-type': 'text/plain' }).end(id),
          (error: unknown) => refuse(outgoing, 500, storyOf(error)),
        )
      default:
        return refuse(outgoing, 404, 'Not found')
    }
  }

  const handOutBackup = async (outgoing: ServerResponse) => {
    try {
      const file = await backup()
      try {
        outgoing.writeHead(200, { 'content-type': 'application/vnd.sqlite3' })
        await pipeline(createReadStream(file), outgoing)
        log.info('Backup sent')
      } finally {
        await rm(file, { force: true })
      }
    } catch (error) {
      log.warn('Backup failed', { error })
      refuse(outgoing, 500, storyOf(error))
    }
  }

  return {
    async listen() {
      if (Buffer.byteLength(path) > longestSocketPath) {
        throw new Error(`The path is longer than ${longestSocketPath} bytes: choose a shorter --data-dir`)
      }
      await rm(path, { force: true })
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(path, () => resolve())
      })
      await chmod(path, 0o600)
    },
    async run(signal) {
      await aborted(signal)
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

function refuse(outgoing: ServerResponse, code: number, text: string): void {
  if (outgoing.headersSent) outgoing.destroy()
  else outgoing.writeHead(code, { 'content-type': 'text/plain' }).end(`${text}\n`)
}

/** The backup that the running controller makes; undefined when none listens. Rejects with the controller's message. */
export function requestBackup(path: string, signal: AbortSignal): Promise<IncomingMessage | undefined> {
  return call(path, 'GET', backupPath, signal)
}

/** Has the running controller read the authority's folder again. False when none listens: a start reads everything. */
export async function requestReload(path: string, signal: AbortSignal): Promise<boolean> {
  const answer = await call(path, 'POST', reloadPath, signal)
  answer?.resume()
  return answer !== undefined
}

/** The ID of the key that the running controller made; undefined when none listens. Rejects with the controller's message. */
export async function requestSecretsKeyRotation(path: string, signal: AbortSignal): Promise<string | undefined> {
  const answer = await call(path, 'POST', rotateSecretsKeyPath, signal)
  return answer && text(answer)
}

/** What another controller is configured with, as JSON; undefined when none listens. */
export async function requestSettings(path: string, signal: AbortSignal): Promise<string | undefined> {
  const answer = await call(path, 'GET', settingsPath, signal)
  return answer && text(answer)
}

/** Whether the running controller leads; undefined when none listens. */
export async function requestLeaderStatus(path: string, signal: AbortSignal): Promise<LeaderStatus | undefined> {
  const answer = await call(path, 'GET', leaderPath, signal)
  if (answer === undefined) return undefined
  const decoded = decode(leaderStatusSchema, parseJson(await text(answer)))
  if (decoded.ok) return decoded.value
  throw new Error(`Cannot read at ${path} whether this controller leads: it has another version`)
}

function call(path: string, method: string, what: string, signal: AbortSignal): Promise<IncomingMessage | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: path, method, path: what, signal }, (response) => {
      if (response.statusCode === 200) return resolve(response)
      response.setEncoding('utf8')
      let text = ''
      response.on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => reject(new Error(text.trim())))
    })
    asked.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(undefined)
      else reject(error)
    })
    asked.end()
  })
}
