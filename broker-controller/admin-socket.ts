/**
 * What only this machine's owner may ask of a running controller: HTTP on a Unix socket in its data directory, which
 * nobody else may open.
 */
import { createReadStream } from 'node:fs'
import { chmod, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { aborted } from '../daemon/aborted.ts'
import { type Log, storyOf } from '../daemon/log.ts'

const backupPath = '/backup'
const reloadPath = '/reload'
/** The kernel's limit for the path of a socket, with its closing zero. */
const longestSocketPath = 107

export function doorPath(dataDir: string): string {
  return join(dataDir, 'controller.sock')
}

export type LocalDoorNeeds = {
  readonly path: string
  /** A backup in a file that the door removes when it was handed out. */
  readonly backup: () => Promise<string>
  /** Takes over what was changed in the authority's folder. */
  readonly reload: () => Promise<void>
  readonly log: Log
}

export interface LocalDoor {
  /** Rejects when the socket cannot be made. */
  listen(): Promise<void>
  run(signal: AbortSignal): Promise<void>
}

/** Whoever holds the lock on the data directory may take away the socket that a killed controller left. */
export function localDoor({ path, backup, reload, log }: LocalDoorNeeds): LocalDoor {
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing))

  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    switch (`${incoming.method} ${incoming.url}`) {
      case `GET ${backupPath}`:
        return handOutBackup(outgoing)
      case `POST ${reloadPath}`:
        return reload().then(
          () => void outgoing.writeHead(200).end(),
          (error: unknown) => refuse(outgoing, 500, storyOf(error)),
        )
      default:
        return refuse(outgoing, 404, 'There is no such thing')
    }
  }

  const handOutBackup = async (outgoing: ServerResponse) => {
    try {
      const file = await backup()
      try {
        outgoing.writeHead(200, { 'content-type': 'application/vnd.sqlite3' })
        await pipeline(createReadStream(file), outgoing)
        log.info('Backup handed out')
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

/** The backup of the controller behind this door; undefined when nobody is behind it. */
export function askForBackup(path: string, signal: AbortSignal): Promise<IncomingMessage | undefined> {
  return ask(path, 'GET', backupPath, signal)
}

/** False when nobody is behind the door: a controller that starts reads everything anyway. */
export async function askToReload(path: string, signal: AbortSignal): Promise<boolean> {
  const answer = await ask(path, 'POST', reloadPath, signal)
  answer?.resume()
  return answer !== undefined
}

function ask(path: string, method: string, what: string, signal: AbortSignal): Promise<IncomingMessage | undefined> {
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
