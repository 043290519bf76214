/** A node without a machine: it is connected to the broker, and connects each session that is requested of it. */
import { once } from 'node:events'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { sessionChannels, sessionPath, sessionProtocol } from '../../../api/sessions.ts'
import { openAuthority } from '../../../certs/authority.ts'
import { issueNode } from '../../../certs/issue.ts'
import { sessionFrames } from '../../../daemon/sessions/session-frames.ts'
import { eventually } from '../../support/wait.ts'
import type { AttackedFleet } from './attacked-fleet.ts'
import { type ClientIdentity, connectPacket, openTls, retainedPacket, subscribePacket } from './clients.ts'

export type HollowNode = {
  /** Sessions that are open on its side. */
  sessions(): number
  close(): void
}

/** Resolves when the controller can request sessions of it. Each writes `output` and stays open until the controller ends it. */
export async function hollowNode(fleet: AttackedFleet, name: string, output: string): Promise<HollowNode> {
  const authority = await openAuthority(join(fleet.controller.dataDir, 'authority'), Date.now())
  const { certificate: cert, key } = issueNode(authority, { nodeName: name, nowMs: Date.now() })
  const identity = { ca: authority.certificate, cert, key }
  await fleet.admin.sendJson('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } })
  const link = await openTls(fleet.mqtt, identity)
  if (link === undefined) throw new Error('The broker accepts no connection')
  const open = new Set<TLSSocket>()
  let unread = ''
  link.on('data', (piece: Buffer) => {
    unread += piece.toString('latin1')
    for (const [text, id = ''] of unread.matchAll(/"session":"([\w-]+)"/g)) {
      unread = unread.slice(unread.indexOf(text) + text.length)
      void connectSession(fleet, identity, id, output).then((socket) => {
        open.add(socket)
        socket.once('close', () => open.delete(socket))
      })
    }
  })
  const online = JSON.stringify({ state: 'online', bootID: 'x', agentVersion: 'v1' })
  link.write(
    Buffer.concat([
      connectPacket(name, 1_000),
      retainedPacket(`bramble/v1/nodes/${name}/connection`, online),
      subscribePacket({ qos: 0 }, `bramble/v1/nodes/${name}/calls`),
    ]),
  )
  await eventually(`${name} is connected`, async () => {
    const { text } = await fleet.admin.send('GET', `/api/v1/nodes/${name}/proxy/healthz`)
    return !/has no connection/.test(text)
  })
  return {
    sessions: () => open.size,
    close() {
      link.destroy()
      for (const socket of open) socket.destroy()
    },
  }
}

async function connectSession(
  { api }: AttackedFleet,
  identity: ClientIdentity,
  id: string,
  output: string,
): Promise<TLSSocket> {
  const socket = await openTls(api, identity)
  if (socket === undefined) throw new Error('The API accepts no connection')
  const lines = [`GET ${sessionPath(id)} HTTP/1.1`, 'Host: x', 'Connection: Upgrade', `Upgrade: ${sessionProtocol}`]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  await once(socket, 'data')
  const frames = sessionFrames(socket)
  await frames.sendText(sessionChannels.status, '{"state":"started"}')
  await frames.sendText(sessionChannels.output, output)
  return socket
}
