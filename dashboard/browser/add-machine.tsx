/** Makes a short-lived token, and shows once how a machine joins with it. */
import { useState } from 'preact/hooks'
import type { SessionAnswer } from '../../api/dashboard/dashboard-messages.ts'
import {
  encodeToken,
  nodeBootstrapGroup,
  type TokenParts,
  tokenFrom,
  tokenNamespace,
} from '../../api/node/bootstrap-token.ts'
import { cloneJoin } from '../../api/node/join-lines.ts'
import { imagerLink, joinFile, joinLine } from '../model/join-texts.ts'
import { callApi, reasonOf } from './api.ts'
import { Dialog } from './dialog.tsx'
import { useMay } from './hooks.ts'

const lifeMs = 3600_000

export function AddMachineButton({ session }: { readonly session: SessionAnswer }) {
  const [isOpen, setOpen] = useState(false)
  const may = useMay({ verb: 'create', resource: 'secrets', namespace: tokenNamespace })
  if (!may) return null
  return (
    <>
      <button type="button" class="primary" onClick={() => setOpen(true)}>
        Add a machine
      </button>
      {isOpen && <AddMachine session={session} onClose={() => setOpen(false)} />}
    </>
  )
}

function AddMachine({ session, onClose }: { readonly session: SessionAnswer; readonly onClose: () => void }) {
  const [token, setToken] = useState<TokenParts>()
  const [problem, setProblem] = useState<string>()
  const [isCreating, setCreating] = useState(false)
  const create = async () => {
    setCreating(true)
    try {
      setToken(await createToken())
    } catch (error) {
      setProblem(reasonOf(error))
    }
    setCreating(false)
  }
  const { server, caHash } = session
  if (server === undefined || caHash === undefined) return null
  const facts = token && { server, caHash, token }
  return (
    <Dialog title="Add a machine" onClose={onClose}>
      {facts === undefined ? (
        <>
          <p>
            A token lets machines join this fleet for one hour. It is shown once; give it only to the machines that you
            add.
          </p>
          {problem !== undefined && (
            <p class="notice bad" role="alert">
              {problem}
            </p>
          )}
        </>
      ) : (
        <>
          <p>On the machine, with the package bramble-agent installed:</p>
          <Copied text={joinLine(facts)} name="command" />
          <p>Or in a clone of the repository:</p>
          <Copied text={cloneJoin(facts)} name="command for a clone" />
          <p>
            Or put this file on the boot partition of its card as <code>bramble.yaml</code>:
          </p>
          <Copied text={joinFile(facts)} name="file" />
          {session.offersCards && (
            <>
              <p>Or write its card on the computer that you sit at, with Raspberry Pi Imager 2:</p>
              <p>
                <a class="imager" href={imagerLink(location.origin, facts.token)}>
                  Open Raspberry Pi Imager
                </a>
              </p>
              <p class="hint">
                It asks whether to use the list of {location.host}, for Wi-Fi and for a user. It works if that computer
                itself trusts the certificate of this page, not the browser alone.
              </p>
            </>
          )}
          <p class="hint">
            They are valid for one hour, and are not shown again. The machine appears here when it has joined.
          </p>
        </>
      )}
      <div class="buttons">
        <button type="button" onClick={onClose}>
          {facts === undefined ? 'Cancel' : 'Done'}
        </button>
        {facts === undefined && (
          <button type="button" class="primary" disabled={isCreating} onClick={() => void create()}>
            Create the token
          </button>
        )}
      </div>
    </Dialog>
  )
}

function Copied({ text, name }: { readonly text: string; readonly name: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => undefined,
    )
  return (
    <div class="copied">
      <pre>
        <code>{text}</code>
      </pre>
      <button type="button" aria-label={`Copy the ${name}`} onClick={() => void copy()}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </div>
  )
}

async function createToken(): Promise<TokenParts> {
  const parts = tokenFrom(crypto.getRandomValues(new Uint8Array(64)))
  const secret = encodeToken({
    ...parts,
    expiration: `${new Date(Date.now() + lifeMs).toISOString().slice(0, 19)}Z`,
    description: 'created on the dashboard',
    usages: ['authentication', 'signing'],
    groups: [nodeBootstrapGroup],
  })
  await callApi('POST', `/api/v1/namespaces/${tokenNamespace}/secrets`, { body: secret })
  return parts
}
