"use strict";

// Paths are relative to this file, so that a proxy may put the service below a path of its own, and the
// page may be read as /docs and as /docs/.
SwaggerUIBundle({
  url: new URL("../openapi.json", document.currentScript.src).href,
  dom_id: "#docs",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  // The key stays in the memory of this tab.
  persistAuthorization: false,
  // Both would ask a server elsewhere.
  validatorUrl: null,
  oauth2RedirectUrl: null,
});
