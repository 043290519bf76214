/** What tests of the dashboard ask of its page, as expressions for `Page.until` and `Page.evaluate`, and how they log in. */
import type { Page } from './browser.ts'
import type { Controller } from './fleet.ts'

/** The text of the first element that matches, or ''. */
export const text = (selector: string) => `(document.querySelector(${JSON.stringify(selector)})?.textContent ?? '')`

/** Whether the machine is shown in this state: `good`, `warn`, `bad` or `idle`. */
export const tile = (name: string, state: string) =>
  `[...document.querySelectorAll('.tile')].some((one) => one.textContent.startsWith(${JSON.stringify(name)}) && one.classList.contains(${JSON.stringify(state)}))`

/** Whether a button with exactly this text is shown. */
export const hasButton = (name: string) =>
  `[...document.querySelectorAll('main button')].some((one) => one.textContent === ${JSON.stringify(name)})`

export const noDialog = `document.querySelector('dialog') === null`

/** A link that logs in once, for the administrator or with `--user`. */
export async function loginLink(controller: Controller, ...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await controller.command('login-link', '--kubeconfig', controller.kubeconfig, ...args)
  if (!stdout.startsWith('https://')) throw new Error(`No login link: ${stdout}${stderr}`)
  return stdout.trim()
}

/** Loads the page again, with such a link. */
export async function openLoggedIn(page: Page, controller: Controller, ...args: readonly string[]): Promise<void> {
  const link = await loginLink(controller, ...args)
  await page.goto('about:blank')
  await page.goto(link)
}
