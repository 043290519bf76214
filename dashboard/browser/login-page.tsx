/** How to log in, and how to trust the certificate of this server once. */
import { useEffect, useState } from 'preact/hooks'
import { logIn, reasonOf } from './api.ts'
import { Mark } from './mark.tsx'

export type LoginPageProps = { readonly problem: string | undefined; readonly onLogin: () => void }

export function LoginPage({ problem, onLogin }: LoginPageProps) {
  const [token, setToken] = useState('')
  const [refusal, setRefusal] = useState<string>()
  const submit = async (event: Event) => {
    event.preventDefault()
    try {
      await logIn({ token: token.trim() })
      onLogin()
    } catch (error) {
      setRefusal(reasonOf(error))
    }
  }
  const shown = refusal ?? problem
  return (
    <main class="login" id="content">
      <h1>
        <Mark /> Bramble
      </h1>
      {shown !== undefined && (
        <p class="notice bad" role="alert">
          {shown}
        </p>
      )}
      <section>
        <h2>Log in with a link</h2>
        <p>Run this where your kubeconfig is, and open the link that it prints. It works once, within ten minutes.</p>
        <pre>
          <code>bramble-controller login-link</code>
        </pre>
      </section>
      <section>
        <h2>Or with a token</h2>
        <form onSubmit={(event) => void submit(event)}>
          <label for="token">Token of a service account</label>
          <div class="field">
            <input
              id="token"
              type="password"
              autocomplete="off"
              spellcheck={false}
              required
              value={token}
              onInput={({ currentTarget }) => setToken(currentTarget.value)}
            />
            <button type="submit" class="primary">
              Log in
            </button>
          </div>
          <p class="hint">
            <code>kubectl create token NAME</code> prints one.
          </p>
        </form>
      </section>
      <Trust />
    </main>
  )
}

/** The server's certificate is signed by the authority of the fleet, which no browser has. */
function Trust() {
  const [hash, setHash] = useState('')
  useEffect(() => {
    fetch('/ca.crt', { method: 'HEAD' }).then(
      ({ headers }) => setHash(headers.get('x-bramble-ca-hash') ?? ''),
      () => undefined,
    )
  }, [])
  return (
    <details>
      <summary>Your browser warns about the certificate?</summary>
      <p>
        The authority of this fleet signed it. Add that authority to your browser once:{' '}
        <a href="/ca.crt" download="bramble-ca.crt">
          download its certificate
        </a>{' '}
        and import it as an authority for websites. First compare its public key with the hash that{' '}
        <code>bramble-controller token create --print-join-command</code> prints on the controller:
      </p>
      {hash !== '' && <p class="hash">{hash}</p>}
    </details>
  )
}
