/** The open logins: one's own, or all for those who may see them. */
import { useState } from 'preact/hooks'
import type { SessionRow } from '../../api/dashboard/dashboard-messages.ts'
import { ago } from '../../api/dashboard/view-words.ts'
import { callApi } from './api.ts'
import { Action } from './dialog.tsx'
import { useNow } from './fleet-stream.ts'
import { useLoaded } from './hooks.ts'

export function LoginsPage() {
  const [version, setVersion] = useState(0)
  const now = useNow()
  const { value, problem } = useLoaded<{ readonly items: readonly SessionRow[] }>('/ui/api/sessions', version)
  return (
    <article class="page">
      <div class="lead">
        <h1>Logins</h1>
      </div>
      {problem !== undefined && <p class="notice bad">{problem}</p>}
      <ul class="conditions">
        {value?.items.map(({ id, user, address, userAgent, opened, isOwn }) => (
          <li key={id} class={isOwn ? 'good' : 'idle'}>
            <span class="dot" aria-hidden="true" />
            <strong>{user}</strong>
            <span>{isOwn ? 'this browser' : address}</span>
            <span class="message">{userAgent}</span>
            <span class="muted">{ago(opened, now)}</span>
            <Action
              name="Revoke"
              title={`Revoke the login of ${user}?`}
              question={isOwn ? 'This browser is logged out.' : `The browser at ${address} is logged out at once.`}
              act={async () => {
                await callApi('DELETE', `/ui/api/sessions/${id}`)
                setVersion((last) => last + 1)
              }}
              isDangerous
            />
          </li>
        ))}
      </ul>
    </article>
  )
}
