/** A second socket before a dockerd: calls are counted there, and can be held back or cut off. */

import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer, request, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import type { Ending } from './dockerd.ts'

export type DockerDoor = {
  readonly socket: string
  /** `POST /containers/create`, in order, with `ID` for what is named. */
  readonly calls: readonly string[]
  /** After the next `pass` of them, calls like this get no answer. Resolves when one was held back. */
  hold(like: RegExp, pass?: number): Promise<void>
  /** The same, but the engine executes the call: only its answer is held back. */
  holdAnswer(like: RegExp, pass?: number): Promise<void>
  /** After the next `pass` calls of any kind, the engine executes one, and the link breaks before its answer. */
  cut(pass: number): void
  /** Whether the call to be cut off has come. */
  readonly wasCut: boolean
  /** Callers that wait for a held answer get a connection error. */
  breakOff(): void
  /** What `GET /info` has from now on beside the engine's own fields; undefined: these alone. */
  setInfo(fields: object | undefined): void
}

export async function dockerDoor(t: Ending, socketPath: string): Promise<DockerDoor> {
  const socket = `${socketPath}-door`
  const calls: string[] = []
  let held: { readonly like: RegExp; pass: number; readonly served: boolean; readonly met: () => void } | undefined
  let cutAfter = Number.POSITIVE_INFINITY
  let info: object | undefined
  const waiting = new Set<ServerResponse>()
  const server = createServer((asked, answer) => {
    const { method = 'GET', url = '/', headers } = asked
    const call = `${method} ${url.replace(/\?.*/, '').replace(/[0-9a-f]{64}/g, 'ID')}`
    calls.push(call)
    const cut = cutAfter-- === 0
    const caught = held?.like.test(call) && held.pass-- <= 0 ? held : undefined
    if (caught !== undefined) waiting.add(answer)
    if (caught?.served === false) return caught.met()
    const passed = request({ socketPath, method, path: url, headers }, (response) => {
      if (caught !== undefined) return caught.met()
      if (cut) {
        response.resume()
        return answer.destroy()
      }
      if (info !== undefined && /^GET (\/v[\d.]+)?\/info$/.test(call)) {
        const fields = info
        json(response)
          .then((own) =>
            answer
              .writeHead(200, { 'content-type': 'application/json' })
              .end(JSON.stringify({ ...Object(own), ...fields })),
          )
          .catch(() => answer.destroy())
        return
      }
      answer.writeHead(response.statusCode ?? 500, response.headers)
      answer.flushHeaders()
      response.pipe(answer)
    })
    passed.on('error', () => {
      if (caught === undefined) answer.destroy()
    })
    if (!cut) answer.on('close', () => passed.destroy())
    asked.pipe(passed)
  })
  await rm(socket, { force: true })
  server.listen(socket)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
  })
  return {
    socket,
    calls,
    hold: (like, pass = 0) =>
      new Promise((met) => {
        held = { like, pass, served: false, met }
      }),
    holdAnswer: (like, pass = 0) =>
      new Promise((met) => {
        held = { like, pass, served: true, met }
      }),
    get wasCut() {
      return cutAfter < 0
    },
    cut(pass) {
      cutAfter = pass
    },
    setInfo(fields) {
      info = fields
    },
    breakOff() {
      held = undefined
      for (const answer of waiting) answer.destroy()
      waiting.clear()
    },
  }
}
